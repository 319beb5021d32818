"""Which TensorRT is there, which one a build uses, and what its refusals mean."""

from __future__ import annotations

import importlib.util
from typing import Literal

from deploychain.backends.tensorrt_build import Build, Flavour
from deploychain.environment import gpu_name
from deploychain.errors import CapabilityError

# GPUs on which TensorRT for RTX deserialises and runs an engine (its ComputeCapability enum, release 1.7).
RTX_CAPABILITIES = ("7.5", "8.0", "8.6", "8.9", "12.0", "12.1")
INSTALL_RTX = 'pip install "deploychain[rtx]"'


def choose(backend: Literal["auto", "tensorrt_rtx", "tensorrt", "trtexec"]) -> Flavour:
    """The flavour for a build: the classic one where it is installed beside a GPU, else TensorRT for RTX.

    Raises:
        CapabilityError: what was asked for, or for ``auto`` both, cannot be had here.
    """
    if backend == "trtexec":
        raise CapabilityError(
            "the build stage does not call trtexec",
            where="build.backend",
            remedy="use `deploychain bundle` and, on the device, `deploychain device build --backend trtexec`",
        )
    classic = importlib.util.find_spec("tensorrt") is not None
    if backend == "tensorrt" or (backend == "auto" and classic and gpu_name()):
        if not classic:
            raise CapabilityError(
                "the Python package tensorrt is not installed",
                where="build.backend",
                remedy="`pip install tensorrt` on an x86 or server GPU; on a Jetson it comes with JetPack "
                "(apt install python3-libnvinfer) and needs a virtual environment with --system-site-packages",
            )
        if not gpu_name():
            raise CapabilityError(
                "tensorrt builds on the GPU that will run the engine, and this machine has none",
                where="build.backend",
                remedy=f"use `backend: tensorrt_rtx` ({INSTALL_RTX}), or build on the device",
            )
        return "tensorrt"
    if importlib.util.find_spec("tensorrt_rtx") is None:
        raise CapabilityError(
            "neither tensorrt with a GPU nor tensorrt_rtx is here to build an engine"
            if backend == "auto"
            else "the Python package tensorrt_rtx is not installed",
            where="build.backend",
            remedy=f"{INSTALL_RTX} builds engines on any x86-64 Linux machine, without a GPU",
        )
    return "tensorrt_rtx"


def advice(build: Build) -> str:
    """What a user can do about a build that failed; empty where nothing sensible can be said."""
    target = build.compute_capability
    if build.kind == "capability" and build.flavour == "tensorrt_rtx":
        return (
            f"TensorRT for RTX has no kernels for {target}: such a GPU (9.0 is H100 and H200, 8.7 is Orin) needs the "
            f"classic TensorRT on the device itself; for layer evidence set build.compute_capability to one of "
            f"{', '.join(RTX_CAPABILITIES)}"
        )
    if target == "7.5" and "Turing" in build.reason:
        return "on 7.5 TensorRT for RTX has no FP32 matrix product: build fp16 or int8 only, or target 8.0 or later"
    if build.kind == "timeout":
        return "raise build.timeout_minutes, or look at the phase that it hung in"
    if build.kind == "crash":
        return "free memory or lower build.opt_batch; if it crashes again, report the model to NVIDIA"
    if build.kind in ("parse", "build") and any(p["node"] or p["candidates"] for p in build.problems):
        return "replace that operator in the model, or move it out of the network into pre- or post-processing"
    return ""


def caveats(build: Build) -> tuple[str, ...]:
    """What is known to differ at this target even where the build succeeds."""
    if build.built and build.flavour == "tensorrt_rtx" and build.compute_capability == "7.5":
        return ("TensorRT for RTX computes INT8 convolutions in FP16 on 7.5 (INT8 matrix products stay INT8)",)
    return ()

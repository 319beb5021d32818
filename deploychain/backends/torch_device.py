"""Which device to train on, and which precision that device is good at."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch

from deploychain.errors import CapabilityError

Mode = Literal["fp32", "fp16-mixed", "bf16-mixed"]
DTYPES: dict[str, torch.dtype] = {"fp16-mixed": torch.float16, "bf16-mixed": torch.bfloat16}


def resolve_device(asked: str, local_rank: int = 0) -> torch.device:
    """``auto`` is the GPU where there is one. Several processes take one GPU each.

    Raises:
        CapabilityError: a GPU is asked for and there is none, or fewer than processes.
    """
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if asked == "cpu" or (asked == "auto" and count == 0):
        return torch.device("cpu")
    if count == 0:
        raise CapabilityError(
            "device: cuda is asked for, but torch finds no GPU",
            where=f"torch {torch.__version__}",
            remedy="install a CUDA build of torch, check the driver (nvidia-smi), or use device: auto",
        )
    if local_rank >= count:
        raise CapabilityError(
            f"process {local_rank + 1} has no GPU: this machine has {count}",
            where="processes",
            remedy="lower `processes`, or train on the CPU with device: cpu",
        )
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    return device


def resolve_precision(asked: str, device: torch.device) -> tuple[Mode, str]:
    """The precision to train in, and a remark for the user (empty where there is nothing to say).

    ``auto`` takes BF16 on GPUs from compute capability 8.0, FP16 from 7.0 (tensor cores), BF16 on CPUs with AMX, else
    FP32: a CPU without matrix units gains little from BF16 (AVX512-BF16, measured on the example networks: 1.4 times as
    fast on the convolutional one, half as fast on the transformer), and emulates what it lacks, 3 to 10 times slower.
    """
    if device.type == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        name = torch.cuda.get_device_name(device)
        if asked == "auto":
            if major >= 8:
                return "bf16-mixed", f"precision auto: bf16-mixed on {name}"
            if major >= 7:
                return "fp16-mixed", f"precision auto: fp16-mixed on {name}"
            return "fp32", f"precision auto: FP32, {name} ({major}.{minor}) has no tensor cores"
        if asked == "bf16-mixed" and major < 8:
            return "bf16-mixed", f"{name} ({major}.{minor}) emulates BF16; fp16-mixed would be faster"
        return _mode(asked), ""
    fast = cpu_half_types()
    if asked == "auto":
        if _cpu_has("_is_amx_tile_supported"):
            return "bf16-mixed", "precision auto: bf16-mixed, this CPU has AMX"
        return "fp32", "precision auto: FP32, there is no GPU and this CPU has no matrix units (AMX) for BF16"
    if asked != "fp32" and asked not in fast:
        return _mode(asked), f"{asked} is emulated on this CPU: correct, but several times slower than FP32"
    return _mode(asked), ""


def _mode(asked: str) -> Mode:
    if asked == "fp16-mixed":
        return "fp16-mixed"
    return "bf16-mixed" if asked == "bf16-mixed" else "fp32"


def cpu_half_types() -> frozenset[str]:
    """Mixed modes that this CPU has instructions for."""
    found = set()
    if _cpu_has("_is_avx512_bf16_supported") or _cpu_has("_is_amx_tile_supported"):
        found.add("bf16-mixed")
    if _cpu_has("_is_amx_fp16_supported"):
        found.add("fp16-mixed")
    return frozenset(found)


def _cpu_has(probe: str) -> bool:
    # Private functions, and not in every torch: absence means no.
    asked = getattr(torch.cpu, probe, None)
    return bool(asked()) if callable(asked) else False


def describe_device(device: torch.device, threads: int | None = None) -> str:
    """``NVIDIA H200 (9.0)`` or ``CPU, 2 threads`` (torch's own number, unless one is given)."""
    if device.type == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        return f"{torch.cuda.get_device_name(device)} ({major}.{minor})"
    threads = threads or torch.get_num_threads()
    return f"CPU, {threads} thread{'s' if threads > 1 else ''}"


def tf32_state(device: torch.device) -> dict[str, bool] | None:
    """Whether "FP32" products run in TF32 on this GPU (torch's default for convolutions); None on a CPU.

    None also where the task mixed torch's old and new TF32 settings, which torch refuses to report.
    """
    if device.type != "cuda":
        return None
    try:
        return {"matmul": torch.backends.cuda.matmul.allow_tf32, "convolution": torch.backends.cudnn.allow_tf32}
    except RuntimeError:
        return None


@contextmanager
def determinism(enabled: bool) -> Iterator[None]:
    """`torch.use_deterministic_algorithms` for the body, and the former state after it."""
    if not enabled:
        yield
        return
    before = torch.are_deterministic_algorithms_enabled()
    benchmark = torch.backends.cudnn.benchmark
    # cuBLAS reads it when its handle is made; without it matrix products are not repeatable.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        torch.backends.cudnn.benchmark = benchmark


@contextmanager
def cpu_threads(count: int | None) -> Iterator[None]:
    """Let torch use that many CPU threads in the body; None changes nothing."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

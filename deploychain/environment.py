"""Facts about this machine: versions, GPU, TensorRT, JetPack. Read without importing any framework."""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@cache
def package_version(name: str) -> str | None:
    """Version of an installed distribution, or None. Reads metadata only."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _first(*names: str) -> str:
    return next((v for v in map(package_version, names) if v), "absent")


_FACTS: dict[str, Callable[[], str]] = {
    "torch": lambda: _first("torch"),
    "onnx": lambda: _first("onnx"),
    "onnxruntime": lambda: _first("onnxruntime", "onnxruntime-gpu"),
    "modelopt": lambda: _first("nvidia-modelopt"),
    "tensorrt": lambda: _first("tensorrt"),
    "tensorrt_rtx": lambda: _first("tensorrt-rtx-cu13", "tensorrt-rtx"),
    "machine": platform.machine,
    "gpu": lambda: gpu_name() or "none",
}


def fact(name: str) -> str:
    """The value of one environment fact, as it enters a stage's key."""
    return _FACTS[name]()


@cache
def gpu_name() -> str | None:
    """Name of the first NVIDIA GPU as the kernel driver reports it, or None."""
    for info in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("Model:"):
                return line.partition(":")[2].strip()
    return None

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


def first_version(*names: str) -> str | None:
    """Version of the first of several distributions that is installed."""
    return next((v for v in map(package_version, names) if v), None)


# Distributions that bring the same import name.
ONNXRUNTIME = ("onnxruntime", "onnxruntime-gpu")
TENSORRT = ("tensorrt", "tensorrt-cu13", "tensorrt-cu12")
TENSORRT_RTX = ("tensorrt-rtx-cu13", "tensorrt-rtx", "tensorrt-rtx-cu12")


@cache
def gpu_name(root: Path = Path("/")) -> str | None:
    """Name of the first NVIDIA GPU: as the kernel driver reports it, or the Jetson that this is; None without one."""
    for info in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("Model:"):
                return line.partition(":")[2].strip()
    return (board_name(root) or "Jetson") if is_jetson(root) else None


def is_jetson(root: Path = Path("/")) -> bool:
    """By L4T's release file, else by the device tree: containers see the tree and need not have the file."""
    if (root / "etc/nv_tegra_release").is_file():
        return True
    try:
        return b"nvidia,tegra" in (root / "proc/device-tree/compatible").read_bytes()
    except OSError:
        return False


def board_name(root: Path = Path("/")) -> str | None:
    """What the device tree calls this board, for example "NVIDIA Jetson AGX Orin Developer Kit"."""
    try:
        text = (root / "proc/device-tree/model").read_bytes()
    except OSError:
        return None
    return text.rstrip(b"\0").decode(errors="replace").strip() or None


_FACTS: dict[str, Callable[[], str | None]] = {
    "torch": lambda: package_version("torch"),
    "onnx": lambda: package_version("onnx"),
    "onnxruntime": lambda: first_version(*ONNXRUNTIME),
    "modelopt": lambda: package_version("nvidia-modelopt"),
    "tensorrt": lambda: first_version(*TENSORRT),
    "tensorrt_rtx": lambda: first_version(*TENSORRT_RTX),
    "machine": platform.machine,
    "gpu": lambda: gpu_name() or "none",
}


def fact(name: str) -> str:
    """The value of one environment fact, as it enters a stage's key."""
    return _FACTS[name]() or "absent"

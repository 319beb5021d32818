"""One look at this machine: processor, memory, GPUs, driver, JetPack, container, TensorRT's tool.

Everything is read from files and from small system tools with a time limit; no framework is imported. ``root`` is
another file system for tests and for images that are not running.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploychain.environment import board_name, is_jetson

# JetPack of each L4T release that NVIDIA shipped for Orin and Thor. An unknown release stays unknown.
JETPACK = {
    "36.2": "6.0 DP",
    "36.2.0": "6.0 DP",
    "36.3": "6.0",
    "36.3.0": "6.0",
    "36.4": "6.1",
    "36.4.0": "6.1",
    "36.4.3": "6.2",
    "36.4.4": "6.2.1",
    "36.4.7": "6.2.1",
    "36.5.0": "6.2.2",
    "36.5": "6.2.2",
    "36.5.2": "6.2.3",
    "38.2": "7.0",
    "38.2.0": "7.0",
    "38.4": "7.1",
    "38.4.0": "7.1",
    "39.2": "7.2",
    "39.2.0": "7.2",
    "39.2.1": "7.2.1",
}
_TRTEXEC_PLACES = ("usr/src/tensorrt/bin/trtexec", "usr/local/tensorrt/bin/trtexec", "opt/tensorrt/bin/trtexec")
_BANNER = re.compile(r"&&&& \w+ \S+(?: \[TensorRT v(\d+)\])?(?: \[b(\d+)\])?")


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str
    compute_capability: str | None = None
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True)
class Trtexec:
    """NVIDIA's command-line builder. ``version`` is None where it does not run; ``problem`` says why."""

    path: str
    on_path: bool
    version: str | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts as found. None means not known."""

    system: str
    architecture: str
    cores: int
    cpu_flags: frozenset[str]
    memory_mib: int | None
    available_mib: int | None
    swap_mib: int | None
    gpus: tuple[Gpu, ...]
    driver: str | None
    driver_cuda: str | None  # the newest CUDA that the driver serves
    board: str | None
    l4t: str | None
    jetpack: str | None
    power_mode: str | None
    container: str | None
    trtexec: Trtexec | None
    tegra: bool = False  # by the device tree; in a container L4T may stay unknown

    @property
    def jetson(self) -> bool:
        return self.tegra or self.l4t is not None


def look(root: Path = Path("/"), *, run_tools: bool = True) -> Machine:
    """Read the facts. ``run_tools=False`` starts no process: versions that only a tool knows stay unknown."""
    memory = _meminfo(root)
    l4t = l4t_release(root)
    gpus, driver, driver_cuda = _gpus(root, run_tools)
    return Machine(
        system=_os_name(root),
        architecture=platform.machine(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        cpu_flags=_cpu_flags(root),
        memory_mib=memory.get("MemTotal"),
        available_mib=memory.get("MemAvailable"),
        swap_mib=memory.get("SwapTotal"),
        gpus=gpus,
        driver=driver,
        driver_cuda=driver_cuda,
        board=board_name(root),
        l4t=l4t,
        jetpack=JETPACK.get(l4t) if l4t else None,
        power_mode=_power_mode(root),
        container=_container(root),
        trtexec=_trtexec(root, run_tools),
        tegra=is_jetson(root),
    )


def l4t_release(root: Path = Path("/")) -> str | None:
    """The Linux for Tegra release, ``36.4.3``, from /etc/nv_tegra_release; None where this is no Jetson."""
    found = re.search(r"R(\d+)[^,]*, REVISION: ([\d.]+)", _read(root / "etc/nv_tegra_release"))
    return f"{found.group(1)}.{found.group(2)}" if found else None


def find_trtexec(root: Path = Path("/")) -> Path | None:
    """trtexec on PATH, else where NVIDIA's packages put it (that folder is not on PATH by default)."""
    on_path = shutil.which("trtexec")
    if on_path:
        return Path(on_path)
    return next((p for p in (root / place for place in _TRTEXEC_PLACES) if os.access(p, os.X_OK) and p.is_file()), None)


def banner_version(text: str) -> str | None:
    """TensorRT's version in a trtexec banner: ``v8601`` is 8.6.1, ``v101601`` 10.16.1; ``[b11]`` adds the build."""
    for line in text.splitlines():
        found = _BANNER.search(line)
        if found and found.group(1):
            number = int(found.group(1))
            base = 10_000 if number >= 10_000 else 1_000
            version = f"{number // base}.{number % base // 100}.{number % 100}"
            return f"{version}.{found.group(2)}" if found.group(2) else version
    return None


def packaged_version(version: str, root: Path = Path("/")) -> str:
    """The four-part version of a three-part one, from Debian's package list; as it is where that does not tell.

    Up to 10.3 the banner has no build number, and engines of 10.3.0.26 and 10.3.0.30 are not the same.
    """
    if version.count(".") != 2:
        return version
    for stanza in _read(root / "var/lib/dpkg/status").split("\n\n"):
        if re.match(r"Package: libnvinfer\d*(-bin)?\n", stanza):
            found = re.search(rf"^Version: ({re.escape(version)}\.\d+)", stanza, re.MULTILINE)
            if found:
                return found.group(1)
    return version


def output_of(
    command: Sequence[str], timeout: float = 10.0, environment: Mapping[str, str] | None = None
) -> tuple[int, str] | None:
    """Exit status and output of a small tool; None where it is absent, not executable, or does not end in time."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            env=environment,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.returncode, done.stdout.decode(errors="replace")


def _trtexec(root: Path, run_tools: bool) -> Trtexec | None:
    path = find_trtexec(root)
    if path is None:
        return None
    on_path = shutil.which("trtexec") == str(path)
    if not run_tools:
        return Trtexec(str(path), on_path)
    answer = output_of([str(path), "--help"])
    version = banner_version(answer[1]) if answer else None
    if version:
        return Trtexec(str(path), on_path, packaged_version(version, root))
    if answer is None:
        return Trtexec(str(path), on_path, problem="it does not start, or does not end within 10 s")
    words = next((x.strip() for x in answer[1].splitlines() if "error" in x.lower() or "cannot" in x.lower()), "")
    return Trtexec(str(path), on_path, problem=words[:200] or f"status {answer[0]}, no version in its output")


def _gpus(root: Path, run_tools: bool) -> tuple[tuple[Gpu, ...], str | None, str | None]:
    """GPUs, driver version and the driver's CUDA version: nvidia-smi, else the kernel driver's files, else Jetson."""
    driver = _kernel_driver(root)
    tool = shutil.which("nvidia-smi") if run_tools else None
    if tool:
        query = "--query-gpu=name,compute_cap,memory.total,driver_version"
        answer = output_of([tool, query, "--format=csv,noheader,nounits"])
        rows = [r.split(",") for r in answer[1].splitlines() if r.count(",") == 3] if answer and answer[0] == 0 else []
        if rows and not is_jetson(root):
            banner = output_of([tool])
            cuda = re.search(r"CUDA Version:\s*([\d.]+)", banner[1]) if banner else None
            gpus = tuple(Gpu(r[0].strip(), _number(r[1]), _whole(r[2])) for r in rows)
            return gpus, rows[0][3].strip() or driver, cuda.group(1) if cuda else None
    if is_jetson(root):
        board = board_name(root) or "Jetson"
        capability = "8.7" if "Orin" in board else "11.0" if "Thor" in board else None
        return (Gpu(board, capability),), driver, None
    names = []
    for info in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        found = re.search(r"^Model:\s*(.+)$", _read(info), re.MULTILINE)
        names.append(Gpu(found.group(1).strip() if found else "NVIDIA GPU"))
    return tuple(names), driver, None


def _number(text: str) -> str | None:
    return text.strip() if re.fullmatch(r"\s*\d+\.\d+\s*", text) else None


def _whole(text: str) -> int | None:
    return int(text) if text.strip().isdigit() else None


def _kernel_driver(root: Path) -> str | None:
    found = re.search(r"Kernel Module\s+(?:for \S+\s+)?([\d.]+)", _read(root / "proc/driver/nvidia/version"))
    return found.group(1) if found else None


def _cpu_flags(root: Path) -> frozenset[str]:
    # x86 writes "flags", Arm "Features".
    found = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", _read(root / "proc/cpuinfo"), re.MULTILINE)
    return frozenset(found.group(1).split()) if found else frozenset()


def _meminfo(root: Path) -> dict[str, int]:
    rows = re.findall(r"^(\w+):\s+(\d+) kB$", _read(root / "proc/meminfo"), re.MULTILINE)
    return {name: int(size) // 1024 for name, size in rows}


def _os_name(root: Path) -> str:
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)"?$', _read(root / "etc/os-release"), re.MULTILINE)
    return found.group(1) if found else platform.system()


def _power_mode(root: Path) -> str | None:
    """The number that nvpmodel keeps; its name is in /etc/nvpmodel.conf."""
    found = re.search(r"pmode:(\d+)", _read(root / "var/lib/nvpmodel/status"))
    if not found:
        return None
    number = int(found.group(1))
    named = re.search(rf"< POWER_MODEL ID={number} NAME=(\S+) >", _read(root / "etc/nvpmodel.conf"))
    return f"{number} ({named.group(1)})" if named else str(number)


def _container(root: Path) -> str | None:
    image = os.environ.get("DEPLOYCHAIN_IMAGE")  # set by the project's Dockerfiles
    if image:
        return image
    if (root / ".dockerenv").exists():
        return "docker"
    return "podman" if (root / "run/.containerenv").exists() else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

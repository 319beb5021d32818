"""The Python packages of this environment: versions from metadata, and answers of a probe process where asked.

What only an import can tell (execution providers, a library that does not load) is asked in separate processes with
a time limit, all at once.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploychain import environment
from deploychain.process import package_environment

_PROBE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Software:
    """Installed packages by import name, the CUDA of torch's build, and what the probes answered."""

    packages: Mapping[str, str | None]
    torch_cuda: str | None = None
    probes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    python: str = ""
    disk_free_mib: int | None = None
    disk: str = ""


def installed(folder: Path, probes: Sequence[str]) -> Software:
    names = {
        "torch": ("torch",),
        "onnx": ("onnx",),
        "onnxruntime": environment.ONNXRUNTIME,
        "modelopt": ("nvidia-modelopt",),
        "lief": ("lief",),
        "requests": ("requests",),
        "onnxslim": ("onnxslim",),
        "huggingface_hub": ("huggingface-hub",),
        "safetensors": ("safetensors",),
        "tensorrt": environment.TENSORRT,
        "tensorrt_rtx": environment.TENSORRT_RTX,
        "polygraphy": ("polygraphy",),
    }
    packages = {name: environment.first_version(*dists) for name, dists in names.items()}
    for name in ("tensorrt", "onnxruntime"):  # JetPack's packages may come without pip metadata
        if packages[name] is None and importlib.util.find_spec(name) is not None:
            packages[name] = "unknown version"
    there = [name for name in probes if packages.get(name)]
    usage = shutil.disk_usage(folder)
    return Software(
        packages=packages,
        torch_cuda=_torch_cuda() if packages["torch"] else None,
        probes=_probe(there),
        python=".".join(map(str, sys.version_info[:3])),
        disk_free_mib=usage.free >> 20,
        disk=str(folder),
    )


def _torch_cuda() -> str | None:
    """CUDA of the installed torch, from its version.py: importing torch takes seconds."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None
    try:
        text = (Path(spec.submodule_search_locations[0]) / "version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"^cuda[^=\n]*=\s*['\"]([\d.]+)['\"]", text, re.MULTILINE)
    return found.group(1) if found else None


def _probe(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    answers: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as elsewhere:  # `-m` puts the working directory first on the import path
        running = {
            name: subprocess.Popen(
                [sys.executable, "-m", "deploychain.backends.probe", name],
                cwd=elsewhere,
                env=package_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            for name in names
        }
        deadline = time.monotonic() + _PROBE_SECONDS
        for name, process in running.items():
            answers[name] = _answer(process, deadline)
    return answers


def _answer(process: subprocess.Popen[bytes], deadline: float) -> dict[str, Any]:
    try:
        text, _ = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return {"ok": False, "error": f"the import did not end within {_PROBE_SECONDS:.0f} s"}
    try:
        answer = json.loads(text.decode(errors="replace").strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {"ok": False, "error": f"the import ended the process (status {process.returncode})"}
    return answer if isinstance(answer, dict) else {"ok": False, "error": "no answer"}

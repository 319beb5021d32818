"""Facts in, checks out: each planted situation and what the doctor must say about it."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import deploychain
from deploychain.doctor import Check, Status, diagnose, examine
from deploychain.machine import Gpu, Machine, Trtexec
from deploychain.records import to_json
from deploychain.software import Software

DESKTOP = Machine(
    system="Ubuntu 24.04",
    architecture="x86_64",
    cores=16,
    cpu_flags=frozenset({"avx2", "f16c"}),
    memory_mib=64000,
    available_mib=50000,
    swap_mib=0,
    gpus=(),
    driver=None,
    driver_cuda=None,
    board=None,
    l4t=None,
    jetpack=None,
    power_mode=None,
    container=None,
    trtexec=None,
)
RTX4090 = dataclasses.replace(
    DESKTOP, gpus=(Gpu("NVIDIA GeForce RTX 4090", "8.9", 24564),), driver="580.65.06", driver_cuda="13.0"
)
ORIN = dataclasses.replace(
    DESKTOP,
    architecture="aarch64",
    gpus=(Gpu("NVIDIA Jetson AGX Orin Developer Kit", "8.7"),),
    board="NVIDIA Jetson AGX Orin Developer Kit",
    l4t="36.4.3",
    jetpack="6.2",
    power_mode="2 (MODE_30W)",
)
NOTHING: dict[str, str | None] = dict.fromkeys(
    ["torch", "onnx", "onnxruntime", "modelopt", "safetensors", "tensorrt", "tensorrt_rtx", "polygraphy"]
)
CHAIN = {
    **NOTHING,
    "torch": "2.13.0",
    "onnx": "1.23.2",
    "onnxruntime": "1.32.0",
    "modelopt": "0.47.0",
    "safetensors": "0.8.0",
    "lief": "1.0.0",
    "requests": "2.34",
    "onnxslim": "0.1.98",
    "huggingface_hub": "1.0",
    "tensorrt_rtx": "1.7.1.116",
}


def look(machine: Machine, **software: Any) -> tuple[dict[str, Check], dict[str, bool]]:
    given = {"packages": CHAIN, "python": "3.11.7", "disk_free_mib": 50_000, "disk": "/work", **software}
    checks, abilities = examine(machine, Software(**given))
    return {c.name: c for c in checks}, {a.name: a.possible for a in abilities}


def test_a_complete_cpu_machine() -> None:
    checks, can = look(DESKTOP)
    assert {n for n, c in checks.items() if c.status is Status.UNUSABLE} == set()
    assert can["train, fold and fine-tune"] and can["build engines"] and not can["run engines"]
    assert "none of them can run" in checks["tensorrt_rtx"].consequence
    assert "slower than FP32" in checks["processor"].consequence


def test_a_base_install_can_read_evidence_only() -> None:
    checks, can = look(DESKTOP, packages=NOTHING)
    assert checks["torch"].status is Status.MISSING and "pip install" in checks["torch"].fix
    assert [name for name, possible in can.items() if possible] == ["read evidence, compare, gate, report"]


def test_a_driver_too_old_for_torchs_cuda() -> None:
    old = dataclasses.replace(RTX4090, driver="550.54.14", driver_cuda="12.4")
    checks, can = look(old, torch_cuda="13.0")
    assert checks["torch"].status is Status.UNUSABLE
    assert "needs driver 580" in checks["torch"].consequence and "12.4" in checks["torch"].fix
    assert not can["train, fold and fine-tune"]
    assert look(old, torch_cuda="12.8")[0]["torch"].status is Status.OK
    assert look(RTX4090, torch_cuda="13.0")[0]["torch"].status is Status.OK


def test_a_cpu_torch_beside_a_gpu_is_told() -> None:
    checks, _ = look(RTX4090)
    assert checks["torch"].status is Status.OK and "stays idle" in checks["torch"].consequence


def test_torch_that_sees_no_gpu() -> None:
    probes = {"torch": {"ok": True, "cuda": False}}
    assert look(RTX4090, torch_cuda="13.0", probes=probes)[0]["torch"].status is Status.UNUSABLE


def test_undeclared_needs_of_modelopt() -> None:
    checks, can = look(DESKTOP, packages={**CHAIN, "lief": None, "onnxslim": None})
    assert checks["modelopt"].status is Status.UNUSABLE
    assert checks["modelopt"].fix == "pip install lief onnxslim"
    assert not can["plan precisions"]
    half, can = look(DESKTOP, packages={**CHAIN, "huggingface_hub": None})
    assert half["modelopt"].status is Status.OK and can["plan precisions"]
    assert "qat.backend: modelopt" in half["modelopt"].consequence
    assert "huggingface_hub" in half["modelopt"].fix


def test_an_import_that_fails_is_unusable_with_its_words() -> None:
    probes = {"onnxruntime": {"ok": False, "error": "ImportError: libfoo.so"}}
    checks, can = look(DESKTOP, probes=probes)
    assert checks["onnxruntime"].status is Status.UNUSABLE and "libfoo.so" in checks["onnxruntime"].found
    assert not can["evaluate"]


def test_an_rtx_gpu_runs_engines_and_a_hopper_does_not() -> None:
    assert look(RTX4090, torch_cuda="13.0")[1]["run engines"]
    hopper = dataclasses.replace(RTX4090, gpus=(Gpu("NVIDIA H200", "9.0", 143771),))
    checks, can = look(hopper, torch_cuda="13.0")
    assert can["build engines"] and not can["run engines"]
    assert "none of them can run" in checks["tensorrt_rtx"].consequence


def test_an_orin_with_trtexec_and_without_bindings() -> None:
    tool = Trtexec("/usr/src/tensorrt/bin/trtexec", False, "10.3.0.26")
    checks, can = look(dataclasses.replace(ORIN, trtexec=tool), packages=NOTHING, python="3.10.12")
    assert checks["jetpack"].found == "JetPack 6.2, L4T 36.4.3, power mode 2 (MODE_30W)"
    assert "python3-libnvinfer" in checks["tensorrt"].fix and "system-site-packages" in checks["tensorrt"].fix
    assert "pip install tensorrt" not in checks["tensorrt"].fix
    assert checks["tensorrt_rtx"].consequence == "it exists for x86-64 only" and not checks["tensorrt_rtx"].fix
    assert checks["python"].status is Status.OK
    assert can["build engines"] and can["run engines"]


def test_a_container_without_the_nvidia_runtime() -> None:
    error = "ImportError: libnvdla_compiler.so: cannot open shared object file"
    tool = Trtexec("/usr/src/tensorrt/bin/trtexec", False, None, "libnvdla_compiler.so: cannot open")
    checks, can = look(
        dataclasses.replace(ORIN, trtexec=tool, container="deploychain:jp6"),
        packages={**NOTHING, "tensorrt": "10.3.0"},
        probes={"tensorrt": {"ok": False, "error": error}},
    )
    for name in ("tensorrt", "trtexec"):
        assert checks[name].status is Status.UNUSABLE and "--runtime nvidia" in checks[name].fix
    assert not can["build engines"]


def test_an_orin_in_a_container_that_hides_its_l4t() -> None:
    tool = Trtexec("/usr/src/tensorrt/bin/trtexec", False, "10.3.0.26")
    hidden = dataclasses.replace(ORIN, l4t=None, jetpack=None, tegra=True, trtexec=tool)
    checks, can = look(hidden, packages=NOTHING)
    assert checks["gpu"].status is Status.OK and "nv_tegra_release" in checks["jetpack"].consequence
    assert can["build engines"] and "python3-libnvinfer" in checks["tensorrt"].fix


def test_little_memory_and_disk() -> None:
    checks, _ = look(dataclasses.replace(ORIN, available_mib=900, swap_mib=100), disk_free_mib=300)
    assert checks["memory"].status is Status.UNUSABLE and "swap" in checks["memory"].fix
    assert checks["disk"].status is Status.UNUSABLE


def test_this_machine_is_diagnosed_and_serialised(tmp_path: Path) -> None:
    made = to_json(diagnose(tmp_path))
    assert made["schema"] == "deploychain.doctor/1"
    assert {c["status"] for c in made["checks"]} <= {"ok", "missing", "unusable"}
    assert json.loads(json.dumps(made)) == made


def test_probes_work_where_the_package_is_found_by_a_relative_path(tmp_path: Path) -> None:
    (tmp_path / "deploychain").symlink_to(Path(deploychain.__file__).parent)
    code = (
        "from pathlib import Path; from deploychain.software import installed\n"
        "print({n: p.get('error') for n, p in installed(Path('.'), ('onnx', 'onnxruntime')).probes.items()})"
    )
    env = {**os.environ, "PYTHONPATH": "."}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, check=False)
    assert "ended the process" not in done.stdout and done.returncode == 0, done.stdout + done.stderr


def test_no_framework_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from deploychain.doctor import diagnose; diagnose(Path('.'));"
        "print([m for m in ('torch', 'onnx', 'onnxruntime', 'modelopt', 'tensorrt_rtx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.strip() == "[]"

"""`deploychain doctor`: what this machine can do, what is missing, and the command that fixes it.

`diagnose` looks; `examine` turns the facts into checks and abilities.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from deploychain.machine import Machine, look
from deploychain.software import Software, installed

DOCTOR_SCHEMA = "deploychain.doctor/1"
INSTALL_CHAIN = 'pip install -c constraints.txt "deploychain[chain,rtx]"'
_QUICK = ("onnx", "onnxruntime", "tensorrt", "tensorrt_rtx")
_SLOW = ("torch", "modelopt")
_RTX_CAPABILITIES = ("7.5", "8.0", "8.6", "8.9", "12.0", "12.1")


class Status(str, Enum):
    OK = "ok"
    MISSING = "missing"
    UNUSABLE = "unusable"  # it is there and does not work


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that the chain may need: what was found, what follows from it, and what to do."""

    name: str
    status: Status
    found: str
    consequence: str = ""
    fix: str = ""  # a command, or what to do where no command can


@dataclass(frozen=True, slots=True)
class Ability:
    """Something that a user wants to do here."""

    name: str
    possible: bool
    how: str  # with what; or what is missing


@dataclass(frozen=True, slots=True)
class Diagnosis:
    schema: str
    checks: tuple[Check, ...]
    abilities: tuple[Ability, ...]
    seconds: float = 0.0


def diagnose(folder: Path, *, imports: bool = False) -> Diagnosis:
    """Look at this machine.

    Args:
        folder: where runs would be written: its disk is checked.
        imports: also import torch and modelopt, which takes seconds.
    """
    started = time.monotonic()
    software = installed(folder, (*_QUICK, *(_SLOW if imports else ())))
    checks, abilities = examine(look(), software)
    return Diagnosis(DOCTOR_SCHEMA, checks, abilities, round(time.monotonic() - started, 3))


def examine(machine: Machine, software: Software) -> tuple[tuple[Check, ...], tuple[Ability, ...]]:
    """Turn facts into checks and abilities. Looks at nothing itself."""
    checks = (
        _python(software),
        _processor(machine),
        _memory(machine),
        _disk(software),
        _gpu(machine),
        _torch(machine, software),
        _package(software, "onnx", "models cannot be exported, planned or checked"),
        _onnxruntime(software),
        _package(software, "safetensors", "weights cannot be read or written"),
        _modelopt(software),
        _tensorrt(machine, software),
        _tensorrt_rtx(machine, software),
        _trtexec(machine),
        _polygraphy(software),
        _jetpack(machine),
        _container(machine),
    )
    return checks, _abilities({c.name: c for c in checks}, machine)


def _python(software: Software) -> Check:
    major, minor = (int(x) for x in software.python.split(".")[:2])
    if (major, minor) < (3, 10):
        return Check("python", Status.UNUSABLE, software.python, "3.10 is the oldest that is supported", "install 3.12")
    if (major, minor) == (3, 10):
        return Check(
            "python", Status.OK, software.python, "reads evidence and builds on devices; the chain wants 3.11+"
        )
    return Check("python", Status.OK, software.python)


def _processor(machine: Machine) -> Check:
    wanted = (
        "f16c",
        "avx2",
        "avx512f",
        "avx512_vnni",
        "avx_vnni",
        "avx512_bf16",
        "avx512_fp16",
        "amx_bf16",
        "amx_fp16",
    )
    arm = ("fphp", "asimdhp", "bf16", "i8mm")
    have = [flag for flag in (*wanted, *arm) if flag in machine.cpu_flags]
    found = f"{machine.architecture}, {machine.cores} cores, {' '.join(have) or 'no half-precision instructions'}"
    notes = []
    if not machine.cpu_flags & {"avx512_fp16", "amx_fp16", "asimdhp"}:
        notes.append("FP16 autocast on this CPU is slower than FP32")
    if not machine.cpu_flags & {"avx512_bf16", "amx_bf16", "bf16"}:
        notes.append("so is BF16" if notes else "BF16 autocast on this CPU is slower than FP32")
    return Check("processor", Status.OK, found, "; ".join(notes))


def _memory(machine: Machine) -> Check:
    if machine.memory_mib is None:
        return Check("memory", Status.OK, "not known")
    found = f"{machine.available_mib or 0:,} of {machine.memory_mib:,} MiB free, swap {machine.swap_mib or 0:,} MiB"
    if (machine.available_mib or 0) + (machine.swap_mib or 0) < 2048:
        return Check("memory", Status.UNUSABLE, found, "engine builds will be killed", "close programs or add swap")
    return Check("memory", Status.OK, found)


def _disk(software: Software) -> Check:
    if software.disk_free_mib is None:
        return Check("disk", Status.OK, "not known")
    found = f"{software.disk_free_mib:,} MiB free at {software.disk}"
    if software.disk_free_mib < 1024:
        return Check(
            "disk", Status.UNUSABLE, found, "a run may not fit", "free space, or use --run-dir on another disk"
        )
    return Check("disk", Status.OK, found)


def _gpu(machine: Machine) -> Check:
    if not machine.gpus:
        return Check(
            "gpu",
            Status.MISSING,
            "no NVIDIA GPU",
            "training, QAT and evaluation run on the CPU; engines are built but cannot run",
        )
    parts = []
    for gpu in machine.gpus:
        capability = f"compute capability {gpu.compute_capability or 'unknown'}"
        parts.append(f"{gpu.name} ({capability}{f', {gpu.memory_mib:,} MiB' if gpu.memory_mib else ''})")
    found = f"{'; '.join(parts)}; driver {machine.driver or 'unknown'}"
    if machine.driver is None and not machine.jetson:
        return Check("gpu", Status.UNUSABLE, found, "the driver does not answer", "load or install the NVIDIA driver")
    return Check("gpu", Status.OK, found)


# The oldest driver branch of each CUDA major version (CUDA minor version compatibility).
_OLDEST_DRIVER = {"11": 450, "12": 525, "13": 580}


def _torch(machine: Machine, software: Software) -> Check:
    version = software.packages.get("torch")
    if version is None:
        return Check("torch", Status.MISSING, "not installed", "no training, QAT or export", INSTALL_CHAIN)
    answer = software.probes.get("torch")
    if answer is not None and not answer.get("ok"):
        return Check("torch", Status.UNUSABLE, f"{version}: {answer.get('error')}", "no training", INSTALL_CHAIN)
    cuda = software.torch_cuda
    found = f"{version} ({'CUDA ' + cuda if cuda else 'CPU build'})"
    if not machine.gpus:
        return Check("torch", Status.OK, found)
    if cuda is None:
        return Check(
            "torch",
            Status.OK,
            found,
            "the GPU stays idle: this torch is a CPU build",
            "on a Jetson use NVIDIA's wheel; elsewhere `pip install torch` for the driver's CUDA",
        )
    oldest = _OLDEST_DRIVER.get(cuda.split(".")[0])
    branch = (machine.driver or "").split(".")[0]
    if not machine.jetson and oldest and branch.isdigit() and int(branch) < oldest:
        return Check(
            "torch",
            Status.UNUSABLE,
            found,
            f"CUDA {cuda} needs driver {oldest} or later, this is {machine.driver}: torch sees no GPU",
            f"update the driver, or install a torch for CUDA {machine.driver_cuda or 'of an older major version'}",
        )
    if answer is not None and not answer.get("cuda"):
        return Check(
            "torch", Status.UNUSABLE, found, "torch.cuda.is_available() is False beside a GPU", "check the driver"
        )
    return Check("torch", Status.OK, found)


def _package(software: Software, name: str, consequence: str) -> Check:
    version = software.packages.get(name)
    if version is None:
        return Check(name, Status.MISSING, "not installed", consequence, INSTALL_CHAIN)
    answer = software.probes.get(name)
    if answer is not None and not answer.get("ok"):
        return Check(name, Status.UNUSABLE, f"{version}: {answer.get('error')}", consequence, INSTALL_CHAIN)
    return Check(name, Status.OK, str(version))


def _onnxruntime(software: Software) -> Check:
    check = _package(software, "onnxruntime", "ONNX models cannot be run or compared")
    providers = [
        p.removesuffix("ExecutionProvider") for p in software.probes.get("onnxruntime", {}).get("providers", ())
    ]
    if check.status is Status.OK and providers:
        return Check(check.name, check.status, f"{check.found} ({', '.join(providers)})")
    return check


def _modelopt(software: Software) -> Check:
    version = software.packages.get("modelopt")
    if version is None:
        return Check("modelopt", Status.MISSING, "not installed", "no FP16 plan", INSTALL_CHAIN)
    # What it imports and does not declare. Never nvidia-modelopt[onnx]: that extra replaces torch and brings a second
    # onnxruntime.
    lacking = [name for name in ("lief", "requests", "onnxslim") if not software.packages.get(name)]
    answer = software.probes.get("modelopt", {})
    if lacking:
        found = f"{version}, without {', '.join(lacking)}"
        return Check(
            "modelopt", Status.UNUSABLE, found, "it does not import: no FP16 plan", f"pip install {' '.join(lacking)}"
        )
    if answer.get("autocast") or answer.get("error"):
        found = f"{version}: {answer.get('autocast') or answer['error']}"
        return Check("modelopt", Status.UNUSABLE, found, "no FP16 plan", INSTALL_CHAIN)
    if answer.get("quantization") or not software.packages.get("huggingface_hub"):
        why = answer.get("quantization") or "without huggingface_hub"
        consequence = f"`qat.backend: modelopt` does not work ({why}); the native backend does"
        return Check("modelopt", Status.OK, version, consequence, "pip install huggingface_hub")
    return Check("modelopt", Status.OK, version)


def _tensorrt(machine: Machine, software: Software) -> Check:
    jetson = machine.jetson
    version = software.packages.get("tensorrt")
    fix = (
        "sudo apt-get install python3-libnvinfer, and a virtual environment made with --system-site-packages"
        if jetson
        else "pip install tensorrt"
    )
    if version is None:
        need = jetson or bool(machine.gpus)
        return Check(
            "tensorrt", Status.MISSING, "not installed", "no engine for this GPU" if need else "", fix if need else ""
        )
    answer = software.probes.get("tensorrt", {})
    if answer and not answer.get("ok"):
        error = str(answer.get("error"))
        if "libnvdla_compiler" in error:
            fix = "start the container with --runtime nvidia: the host's JetPack supplies that library"
        return Check("tensorrt", Status.UNUSABLE, f"{version}: {error}", "no engine for this GPU", fix)
    found = str(answer.get("version", version))
    if not machine.gpus:
        return Check("tensorrt", Status.UNUSABLE, found, "it builds on the GPU that runs the engine, and there is none")
    return Check("tensorrt", Status.OK, found)


def _tensorrt_rtx(machine: Machine, software: Software) -> Check:
    version = software.packages.get("tensorrt_rtx")
    if version is None:
        if machine.architecture != "x86_64" or machine.jetson:
            return Check("tensorrt_rtx", Status.MISSING, "not installed", "it exists for x86-64 only")
        fix = 'pip install "deploychain[rtx]"'
        return Check("tensorrt_rtx", Status.MISSING, "not installed", "no engines without a GPU", fix)
    answer = software.probes.get("tensorrt_rtx", {})
    if answer and not answer.get("ok"):
        return Check(
            "tensorrt_rtx",
            Status.UNUSABLE,
            f"{version}: {answer.get('error')}",
            "no engines without a GPU",
            'pip install --force-reinstall "deploychain[rtx]"',
        )
    capabilities = answer.get("compute_capabilities", _RTX_CAPABILITIES)
    runs = [g.name for g in machine.gpus if g.compute_capability in capabilities]
    consequence = "" if runs else "builds engines and shows their layers; none of them can run on this machine"
    return Check("tensorrt_rtx", Status.OK, f"{version} (for {', '.join(capabilities)})", consequence)


def _trtexec(machine: Machine) -> Check:
    tool = machine.trtexec
    if tool is None:
        need = bool(machine.gpus)
        return Check(
            "trtexec",
            Status.MISSING,
            "not found",
            "`device build` needs the tensorrt package instead" if need else "",
            "sudo apt-get install libnvinfer-bin" if machine.jetson else "",
        )
    where = "" if tool.on_path else ", not on PATH (found all the same)"
    if tool.version is None:
        fix = "start the container with --runtime nvidia" if "libnv" in tool.problem else "reinstall TensorRT's tools"
        return Check("trtexec", Status.UNUSABLE, f"{tool.path}{where}: {tool.problem}", "it cannot build", fix)
    return Check("trtexec", Status.OK, f"{tool.version} at {tool.path}{where}")


def _polygraphy(software: Software) -> Check:
    version = software.packages.get("polygraphy")
    if version is None:
        return Check("polygraphy", Status.MISSING, "not installed", "not needed; useful to look into engines by hand")
    return Check("polygraphy", Status.OK, version)


def _jetpack(machine: Machine) -> Check:
    if machine.l4t is None:
        if machine.jetson:
            found = f"{machine.board or 'Jetson'}, L4T not known"
            return Check("jetpack", Status.OK, found, "mount /etc/nv_tegra_release into the container to tell it")
        return Check("jetpack", Status.MISSING, "this is no Jetson")
    mode = f", power mode {machine.power_mode}" if machine.power_mode else ""
    if machine.jetpack is None:
        return Check("jetpack", Status.OK, f"L4T {machine.l4t}{mode}", "its JetPack version is not in this table")
    return Check("jetpack", Status.OK, f"JetPack {machine.jetpack}, L4T {machine.l4t}{mode}")


def _container(machine: Machine) -> Check:
    if machine.container is None:
        return Check("container", Status.MISSING, "not inside a container")
    return Check("container", Status.OK, machine.container)


def _abilities(checks: Mapping[str, Check], machine: Machine) -> tuple[Ability, ...]:
    def need(name: str, *wanted: str) -> Ability:
        lacking = [w for w in wanted if checks[w].status is not Status.OK]
        return Ability(name, not lacking, f"needs {', '.join(lacking)}" if lacking else f"with {', '.join(wanted)}")

    gpu = checks["gpu"].status is Status.OK
    classic = checks["tensorrt"].status is Status.OK or (gpu and checks["trtexec"].status is Status.OK)
    rtx = checks["tensorrt_rtx"].status is Status.OK
    rtx_runs = rtx and not checks["tensorrt_rtx"].consequence
    builder = "tensorrt" if checks["tensorrt"].status is Status.OK else "trtexec" if classic else "tensorrt_rtx"
    with_builder = f"with {builder}"
    return (
        need("train, fold and fine-tune", "torch", "safetensors"),
        need("export to ONNX", "torch", "onnx", "onnxruntime"),
        need("plan precisions", "onnx", "onnxruntime", "modelopt"),
        Ability(
            "build engines", classic or rtx, f"with {builder}" if classic or rtx else "needs tensorrt or tensorrt_rtx"
        ),
        Ability(
            "run engines",
            classic or rtx_runs,
            with_builder if classic or rtx_runs else "needs an NVIDIA GPU that the installed TensorRT serves",
        ),
        need("evaluate", "torch", "onnxruntime"),
        Ability("read evidence, compare, gate, report", True, "base install"),
    )

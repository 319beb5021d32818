"""Start one build process per engine, watch it, and bring back what it said, whatever became of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from deploychain.errors import ConfigError
from deploychain.process import Ended, package_environment, watch

Flavour = Literal["tensorrt", "tensorrt_rtx"]
# phase, done, total, elapsed seconds, resident memory in MiB
OnProgress = Callable[[str, int, int, float, int], None]
WORKER = "deploychain.backends.tensorrt_worker"


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What to build.

    ``examples`` are shapes of real data by input name, ``axis_sizes`` sizes by axis name: for dynamic axes that are
    not the batch.
    """

    flavour: Flavour
    onnx: Path
    engine: Path
    compute_capability: str | None = None
    shapes: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)
    opt_batch: int = 8
    examples: Mapping[str, Sequence[int]] = field(default_factory=dict)
    axis_sizes: Mapping[str, int] = field(default_factory=dict)
    strongly_typed: bool = True
    flags: tuple[str, ...] = ()  # BuilderFlag names, for weakly typed networks up to 10.x
    layer_precisions: Mapping[str, str] = field(default_factory=dict)  # ONNX node -> fp32 or fp16, likewise
    dla_core: int | None = None
    workspace_mib: int | None = None
    timing_cache: Path | None = None


@dataclass(frozen=True, slots=True)
class Build:
    """The outcome of one build.

    ``kind`` says where it ended: "" (built), "parse", "build", "capability", "timeout" or "crash".
    ``network`` lists the parsed layers with their types, ``text`` is the builder's layer listing as printed.
    """

    built: bool
    kind: str
    reason: str
    flavour: str
    version: str
    compute_capability: str
    seconds: float  # of the whole process
    build_seconds: float | None = None
    size_bytes: int | None = None
    peak_memory_mib: int | None = None
    text: str = ""
    network: tuple[Mapping[str, Any], ...] = ()
    profiles: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)
    problems: tuple[Mapping[str, Any], ...] = ()
    messages: tuple[Mapping[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


def build_engine(
    request: BuildRequest,
    work: Path,
    *,
    timeout: float,
    on_progress: OnProgress | None = None,
    command: Sequence[str] | None = None,
) -> Build:
    """Build one engine in a process of its own.

    Args:
        work: an existing folder for the request, the result and the process's output.
        timeout: seconds after which the process group is killed.
        command: another worker than the package's own; it is given the request file as its last argument.

    Raises:
        ConfigError: the shapes do not fit the model.
        StageError: the process could not be started.
    """
    work = work.resolve()  # the process runs in it
    paths = {name: work / f"{request.engine.stem}.{name}" for name in ("request.json", "result.json", "phase", "log")}
    for path in paths.values():
        path.unlink(missing_ok=True)
    request.engine.unlink(missing_ok=True)
    asked = _request_json(request, paths["result.json"], paths["phase"])
    paths["request.json"].write_text(json.dumps(asked, indent=1), encoding="utf-8")

    def tick(elapsed: float, memory: int) -> None:
        if on_progress is not None:
            seen = _read_json(paths["phase"]) or {}
            phase = str(seen.get("phase", "start"))
            on_progress(phase, int(seen.get("done", 0)), int(seen.get("total", 0)), elapsed, memory)

    ended = watch(
        [*(command or (sys.executable, "-m", WORKER)), str(paths["request.json"])],
        paths["log"],
        timeout=timeout,
        folder=work,  # `-m` puts the working directory first on the import path: it must be ours
        environment=package_environment(),
        on_tick=tick,
    )
    seconds = ended.seconds
    result = _read_json(paths["result.json"])
    if result is None or ended.timed_out:
        request.engine.unlink(missing_ok=True)
        kind, reason = _death(ended, timeout, paths)
        return Build(
            False,
            kind,
            reason,
            request.flavour,
            "",
            request.compute_capability or "",
            seconds,
            settings=_asked(request),
        )
    if result.get("kind") == ConfigError.kind:
        told = result["error"]
        raise ConfigError(told["message"], where=told["where"], remedy=told["remedy"])
    return Build(
        built=bool(result["built"]),
        kind=result["kind"],
        reason=result["reason"],
        flavour=result["flavour"],
        version=result["version"],
        compute_capability=result["compute_capability"],
        seconds=seconds,
        build_seconds=result.get("seconds"),
        size_bytes=result.get("size_bytes"),
        peak_memory_mib=result.get("peak_memory_mib"),
        text=result["text"],
        network=tuple(result["network"]),
        profiles=result["profiles"],
        problems=tuple(result["problems"]),
        messages=tuple(result["messages"]),
        notes=tuple(result["notes"]),
        settings=result["settings"] or _asked(request),
    )


def _request_json(request: BuildRequest, result: Path, phase: Path) -> dict[str, Any]:
    return {
        "flavour": request.flavour,
        "onnx": str(request.onnx.resolve()),
        "engine": str(request.engine.resolve()),
        "compute_capability": request.compute_capability,
        "shapes": {k: {m: list(s) for m, s in v.items()} for k, v in request.shapes.items()},
        "opt_batch": request.opt_batch,
        "examples": {k: list(v) for k, v in request.examples.items()},
        "axis_sizes": dict(request.axis_sizes),
        "strongly_typed": request.strongly_typed,
        "flags": list(request.flags),
        "layer_precisions": dict(request.layer_precisions),
        "dla_core": request.dla_core,
        "workspace_mib": request.workspace_mib,
        "timing_cache": str(request.timing_cache) if request.timing_cache else None,
        "result": str(result),
        "phase_file": str(phase),
    }


def _asked(request: BuildRequest) -> dict[str, Any]:
    return {"strongly_typed": request.strongly_typed, "flags": list(request.flags)}


def _death(ended: Ended, timeout: float, paths: Mapping[str, Path]) -> tuple[str, str]:
    phase = str((_read_json(paths["phase"]) or {}).get("phase", "start"))
    if ended.timed_out:
        return "timeout", f"the build did not end within {timeout / 60:.3g} minutes (phase: {phase}) and was killed"
    last = [line for line in paths["log"].read_text(errors="replace").splitlines() if line.strip()][-1:]
    said = f"; its last words: {last[0].strip()[:300]}" if last else ""
    if ended.signal_name:
        hint = ", as the kernel does when memory runs out" if ended.killed_for_memory else ""
        return "crash", f"the build process was ended by {ended.signal_name}{hint} (phase: {phase}){said}"
    return "crash", f"the build process ended with status {ended.status} and left no result (phase: {phase}){said}"


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None

"""`deploychain device import`: a device's result joins its run, as a comparison that gate and report read."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from deploychain.artifact import sha256_of
from deploychain.device.result import DeviceResult, EngineResult, read_result
from deploychain.errors import ArtifactError, DeploychainError
from deploychain.numerics.scores import data_sha256, read_scores
from deploychain.records import COMPARISON_SCHEMA, Comparison, EvalReport, Provenance, to_json
from deploychain.task import score

if TYPE_CHECKING:
    from deploychain.task import Task

_KINDS = ("onnx-fp32", "onnx-fp16", "onnx-int8", "onnx-qat")


@dataclass(frozen=True, slots=True)
class Imported:
    """Where the device's comparison went."""

    folder: Path
    comparison: Comparison
    notes: tuple[str, ...]


def import_result(
    file: Path, run_dir: Path, *, pipeline: Path | None = None, note: Callable[[str], None] = lambda text: None
) -> Imported:
    """Check that a result belongs to a run, take the task's metrics on the device's outputs, and write the comparison.

    The comparison goes to ``RUN/devices/<device>/``: the ONNX rows on the bundle's samples, the device's engines,
    their layers and latencies. The run's own comparison stays as it is.

    Args:
        pipeline: for the task's metrics; without it top-1 is kept where the targets are class indices.

    Raises:
        ArtifactError: the result is damaged, or of other models than the run's.
    """
    result = read_result(file)
    _check_models(result, run_dir, file)
    notes: list[str] = []
    task, targets = _task(result, pipeline, notes)
    evals = [*result.evals]
    for engine in result.engines:
        evals.append(_evaluation(engine, result, file.parent, task, targets, notes))
    folder = run_dir / "devices" / _slug(f"{result.fingerprint.device}-{result.backend}")
    comparison = Comparison(
        schema=COMPARISON_SCHEMA,
        provenance=_provenance(result),
        evals=tuple(evals),
        engines=tuple(engine.report for engine in result.engines),
        latency=tuple(engine.latency for engine in result.engines if engine.latency is not None),
        directions=result.directions,
        notes=(*result.notes, *notes),
    )
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / ".comparison.json.part"
    part.write_text(json.dumps(to_json(comparison), ensure_ascii=False, allow_nan=False), encoding="utf-8")
    part.replace(folder / "comparison.json")
    kept = folder / "device-result.json"
    if not kept.exists() or not kept.samefile(file):
        shutil.copyfile(file, kept)
    for line in notes:
        note(line)
    return Imported(folder, comparison, tuple(notes))


def _check_models(result: DeviceResult, run_dir: Path, file: Path) -> None:
    """Every model that the device built from must be the run's own.

    Raises:
        ArtifactError: the run has another model, or none.
    """
    from deploychain.workspace import Workspace

    workspace = Workspace(run_dir)
    own: dict[str, str] = {}
    for stage in ("export", "plan"):
        record = workspace.latest(stage)
        own |= {a.kind: a.sha256 for a in record.artifacts} if record else {}
    if not own:
        raise ArtifactError("this folder holds no run with models", where=str(run_dir), remedy="name the run folder")
    named = {kind: result.models.get(f"models/{kind}/model.onnx") for kind in _KINDS}
    if not any(named[kind] for kind in _KINDS if kind in own):
        raise ArtifactError(
            "the result does not say from which of this run's models the engines were built",
            where=str(file),
            remedy="copy it from the device again",
        )
    for kind, theirs in named.items():
        if theirs is not None and kind in own and own[kind] != theirs:
            raise ArtifactError(
                f"the device built another {kind} model (sha256 {theirs[:12]}) than this run has ({own[kind][:12]})",
                where=str(file),
                remedy="make a new bundle of this run and build it on the device, or name the run that it was made of",
            )


def _task(result: DeviceResult, pipeline: Path | None, notes: list[str]) -> tuple[Task | None, Any]:
    if pipeline is None or not any(engine.outputs for engine in result.engines):
        return None, None
    from deploychain.config import load_pipeline

    ref = load_pipeline(pipeline).task
    if ref is None:
        return None, None
    try:
        from deploychain.backends.torch_data import collect_test
    except ImportError as error:
        notes.append(f"the task's metrics were not taken: {error}")
        return None, None
    task = ref.load()
    inputs, targets = collect_test(task, result.samples)
    if result.data_sha256 is not None and data_sha256(inputs, targets) != result.data_sha256:
        notes.append("the task's test data are not those of the bundle any more: its metrics were not taken")
        return None, None
    return task, targets


def _evaluation(
    engine: EngineResult, result: DeviceResult, folder: Path, task: Task | None, targets: Any, notes: list[str]
) -> EvalReport:
    stage = f"engine-{engine.name}"
    report = engine.evaluation
    if report is None:
        reason = engine.report.reason or "it was not measured on the device"
        return EvalReport(stage, ran=False, reason=reason, reference="onnx-fp32")
    if task is None or not report.ran or engine.outputs is None:
        return report
    try:
        outputs = _outputs(engine, folder)
        count = len(next(iter(outputs.values())))
        if count != result.samples:
            notes.append(f"{stage}: the task's metrics need all {result.samples} samples, the device ran {count}")
            return report
        scores = read_scores(score(task, outputs, targets), count, report.sample_classes)
    except DeploychainError as error:
        notes.append(f"{stage}: the task's metrics were not taken: {error}")
        return report
    return replace(report, metrics=scores.metrics, per_sample=scores.per_sample, per_class=scores.per_class)


def _outputs(engine: EngineResult, folder: Path) -> dict[str, npt.NDArray[Any]]:
    """The raw outputs beside the result, if they are those that the device wrote.

    Raises:
        ArtifactError: they are missing or were changed.
    """
    name = engine.outputs or ""
    path = folder / name
    if Path(name).name != name or not path.is_file():
        raise ArtifactError(f"{name} is not beside the result", where=str(folder), remedy="copy it from the device too")
    if sha256_of(path) != engine.outputs_sha256:
        raise ArtifactError(f"{name} is not what the device wrote", where=str(path), remedy="copy it again")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, AttributeError, BadZipFile) as error:  # AttributeError: a lone array
        raise ArtifactError(f"{name} is no archive of arrays: {error}", where=str(path)) from None


def _provenance(result: DeviceResult) -> Provenance:
    flags = {f"engine-{e.name}": f"{e.typing} typed {' '.join(e.flags)}".strip() for e in result.engines}
    flags |= {"clocks": result.clocks, "power mode": result.power_mode or "unknown"}
    return Provenance(
        pipeline=result.bundle,
        data_sha256=result.data_sha256,
        samples=result.samples,
        device=result.fingerprint.device,
        tensorrt=f"{result.backend} ({result.fingerprint.library} {result.fingerprint.tensorrt})",
        versions={**result.versions, "l4t": result.fingerprint.l4t, "jetpack": result.jetpack or "none"},
        flags=flags,
        created=result.created,
    )


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.").lower()[:80] or "device"

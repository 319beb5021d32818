"""Stage `plan`: the FP16 and INT8+FP16 models, and for every node the precision it should compute in, and why."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deploychain.errors import ArtifactError, StageError
from deploychain.job import Job, Stage, StageResult
from deploychain.plan import ModelPlan, Plan, write_plan
from deploychain.settings import PlanSettings
from deploychain.stages.planning import PlanRequest, make_plan

PLAN_FILE = "precision-plan.json"
_SOURCES = {"fp16": "onnx-fp32", "int8": "onnx-qat"}


def run(job: Job[PlanSettings]) -> StageResult:
    """Plan and convert each model that the settings name and the chain has.

    Raises:
        StageError: a model cannot be planned or converted; the node is named.
        CapabilityError: ModelOpt is missing.
    """
    settings = job.settings
    inputs = _calibration(job)
    modules = _modules(job)
    models: dict[str, ModelPlan] = {}
    artifacts: dict[str, str] = {}
    for name in settings.precisions:
        kind = _SOURCES[name]
        if not job.has(kind):
            job.note(f"no {name} model: the chain has no {kind}")
            continue
        request = PlanRequest(
            source=job.input(kind),
            precision=name,
            output=job.out / f"model.{name}.onnx",
            inputs=inputs,
            pins=settings.pin,
            data_max=settings.data_max,
            init_max=settings.init_max,
            keep_io_types=settings.keep_io_types,
            modules=modules,
        )
        with job.progress(f"plan {name}") as progress:
            made = make_plan(request, lambda step, done, total: progress.update(done, total, step=step))
        models[name] = made
        artifacts[f"onnx-{name}"] = made.output
        _tell(job, name, made)
    if not models:
        raise StageError("no model could be planned", where="plan", remedy="add the export stage, or start.onnx")
    write_plan(Plan(models, pins=settings.pin, settings=settings.model_dump(mode="json")), job.out / PLAN_FILE)
    summary = {name: _summary(made) for name, made in models.items()}
    return StageResult({**artifacts, "precision-plan": PLAN_FILE}, summary)


def _summary(made: ModelPlan) -> dict[str, Any]:
    severities = Counter(f.severity for f in made.findings)
    return {
        "nodes": dict(Counter(n.precision for n in made.nodes)),
        "casts": made.casts,
        "errors": severities["error"],
        "warnings": severities["warning"],
    }


def _tell(job: Job[PlanSettings], name: str, made: ModelPlan) -> None:
    for finding in made.findings:
        if finding.severity in ("error", "warning"):
            job.note(f"{name}: {finding.severity}: {finding.node}: {finding.detail} ({finding.remedy})")
    for note in made.notes:
        job.note(f"{name}: {note}")


def _calibration(job: Job[PlanSettings]) -> dict[str, npt.NDArray[Any]]:
    """Calibration samples of the task, or the arrays that the user gave."""
    limit = job.settings.calibration_samples
    if job.has("data"):
        return read_npz(job.input("data"), limit)
    from deploychain.backends import torch_data

    task = job.need_task().load()
    loader = torch_data.make_loader(task, "calibration", min(limit, 64), job.seed, shuffle=True)
    parts: dict[str, list[npt.NDArray[Any]]] = {}
    names: tuple[str, ...] = ()
    taken = 0
    for batch in loader:
        values, _ = torch_data.split_batch(batch)
        names = names or torch_data.input_names(task.model(), values)
        for key, value in torch_data.inputs_to_dict(values, names).items():
            parts.setdefault(key, []).append(np.asarray(value)[: limit - taken])
        taken += torch_data.batch_length(values)
        if taken >= limit:
            break
    return {key: np.concatenate(arrays) for key, arrays in parts.items()}


def read_npz(path: Path, limit: int | None = None) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an npz file but `targets`, cut to the first ``limit`` samples.

    Raises:
        ArtifactError: no npz, or it holds pickled objects, which are never loaded.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name][:limit] for name in stored.files if name != "targets"}
    except (OSError, ValueError, EOFError, KeyError, AttributeError) as error:
        raise ArtifactError(
            f"cannot read the arrays: {' '.join(str(error).split())[:200]}",
            where=str(path),
            remedy="np.savez(path, input_name=array, ...)",
        ) from None


def _modules(job: Job[PlanSettings]) -> dict[str, str]:
    """Node to torch module, from the export report where the chain has one."""
    if not job.has("export-report"):
        return {}
    report = json.loads(job.input("export-report").read_text(encoding="utf-8"))
    nodes = report.get("nodes", {})
    return {k: v for k, v in nodes.items() if isinstance(v, str)}


STAGE = Stage(
    name="plan",
    version=1,
    requires=("onnx-fp32",),
    accepts=("onnx-qat", "export-report", "data"),
    produces=("onnx-fp16", "onnx-int8", "precision-plan"),
    facts=("onnx", "onnxruntime", "modelopt"),
    uses_task=False,  # a chain that starts from a foreign ONNX file calibrates on `data`
    run=run,
    needs=("onnx", "onnxruntime", "modelopt"),
)

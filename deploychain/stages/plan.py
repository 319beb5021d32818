"""Stage `plan`: the FP16 and INT8+FP16 models, and for every node the precision it should compute in, and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from deploychain.errors import StageError
from deploychain.job import Job, Stage, StageResult
from deploychain.plan import ModelPlan, Plan, unmatched, write_plan
from deploychain.records import to_json
from deploychain.settings import PlanSettings

PLAN_FILE = "precision-plan.json"
_SOURCES = {"fp16": "onnx-fp32", "int8": "onnx-qat"}


def run(job: Job[PlanSettings]) -> StageResult:
    """Plan and convert each model that the settings name and the chain has.

    Raises:
        StageError: a model cannot be planned or converted; the node is named.
        CapabilityError: ModelOpt is missing.
    """
    from deploychain.stages.plan_data import from_job  # numpy is loaded only when the stage runs
    from deploychain.stages.planning import PlanRequest, make_plan

    settings = job.settings
    data = from_job(job)
    modules = _modules(job)
    models: dict[str, ModelPlan] = {}
    artifacts: dict[str, str] = {}
    for name in settings.precisions:
        kind = _SOURCES[name]
        by_calibration = name == "int8" and settings.ptq and not job.has(kind)
        if by_calibration:
            kind = "onnx-fp32"
        elif not job.has(kind):
            hint = "; plan.ptq: true makes it by calibration" if name == "int8" else ""
            job.note(f"no {name} model: the chain has no {kind}{hint}")
            continue
        request = PlanRequest(
            source=job.input(kind),
            precision=name,
            output=job.out / f"model.{name}.onnx",
            inputs=data.inputs,
            data=data.file,
            pins=settings.pin,
            data_max=settings.data_max,
            init_max=settings.init_max,
            keep_io_types=settings.keep_io_types,
            modules=modules,
            max_drop=settings.max_drop,
            budget=settings.budget,
            journal=job.scratch / f"{name}.search.jsonl" if settings.max_drop is not None else None,
            metric=data.metric if settings.max_drop is not None else None,
            metric_name=data.metric_name,
            prove_guards=settings.prove_guards,
            ptq=by_calibration,
        )
        with job.progress(f"plan {name}") as progress:
            made = make_plan(request, lambda step, done, total: progress.update(done, total, step=step))
        models[name] = made
        artifacts[f"onnx-{name}"] = made.output
        _tell(job, name, made)
    _every_pin_is_used(settings, models)
    if not models:
        raise StageError("no model could be planned", where="plan", remedy="add the export stage, or start.onnx")
    write_plan(Plan(models, pins=settings.pin, settings=settings.model_dump(mode="json")), job.out / PLAN_FILE)
    summary = {name: _summary(made) for name, made in models.items()}
    return StageResult({**artifacts, "precision-plan": PLAN_FILE}, summary)


def _every_pin_is_used(settings: PlanSettings, models: Mapping[str, ModelPlan]) -> None:
    names = [node.name for made in models.values() for node in made.nodes]
    found = unmatched(settings.pin, names) if names else None
    if found is not None:
        raise StageError(f"plan.pin: {found[0]!r} matches no node", where="plan", remedy=found[1])


def _summary(made: ModelPlan) -> dict[str, Any]:
    severities = Counter(f.severity for f in made.findings)
    return {
        "nodes": dict(Counter(n.precision for n in made.nodes)),
        "casts": made.casts,
        "drop": to_json(made.drop),
        "drop_of": made.drop_of,
        "within": made.within,
        "evaluations": made.evaluations,
        "errors": severities["error"],
        "warnings": severities["warning"],
    }


def _tell(job: Job[PlanSettings], name: str, made: ModelPlan) -> None:
    for finding in made.findings:
        if finding.severity in ("error", "warning"):
            job.note(f"{name}: {finding.severity}: {finding.node}: {finding.detail} ({finding.remedy})")
    for note in made.notes:
        job.note(f"{name}: {note}")
    if made.within is False:
        job.note(
            f"{name}: no plan keeps the drop within {job.settings.max_drop:g} ({made.drop_of}): it is {made.drop:.3g}"
        )


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
    facts=("onnx", "onnxruntime", "modelopt", "tensorrt", "tensorrt_rtx"),
    uses_task=False,  # a chain that starts from a foreign ONNX file calibrates on `data`
    run=run,
    needs=("onnx", "onnxruntime", "modelopt"),
)

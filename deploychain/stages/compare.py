"""Stage `compare`: every evaluation and every judged engine in one file. It measures nothing and decides nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from deploychain.errors import ArtifactError
from deploychain.job import Job, Stage, StageResult
from deploychain.records import (
    COMPARISON_SCHEMA,
    EVALS_SCHEMA,
    Comparison,
    EngineReport,
    EvalReport,
    Provenance,
    Training,
    to_json,
)
from deploychain.settings import CompareSettings

FILE = "comparison.json"


def run(job: Job[CompareSettings]) -> StageResult:
    """Join what evaluate measured with what the builder said about the layers.

    Raises:
        ArtifactError: an input has another schema or is damaged.
    """
    measured = _read(job, "eval-reports", EVALS_SCHEMA)
    evidence = _read(job, "engine-evidence") if job.has("engine-evidence") else None
    engines = _engines(job, evidence)
    notes = [] if evidence else ["no engine was built in this chain: nothing is known of built layers"]
    comparison = Comparison(
        schema=COMPARISON_SCHEMA,
        provenance=_provenance(job, measured, evidence),
        evals=_evals(job, measured),
        engines=engines,
        directions=measured["directions"],
        notes=tuple(notes),
        training=_training(job),
    )
    text = json.dumps(to_json(comparison), ensure_ascii=False, allow_nan=False)
    (job.out / FILE).write_text(text, encoding="utf-8")
    return StageResult({"comparison": FILE}, _summary(comparison))


def _evals(job: Job[CompareSettings], measured: Mapping[str, Any]) -> tuple[EvalReport, ...]:
    from pydantic import TypeAdapter, ValidationError

    try:
        reports = TypeAdapter(tuple[EvalReport, ...]).validate_python(measured["evals"])
    except ValidationError as error:
        first = error.errors()[0]
        raise ArtifactError(
            f"evals.{'.'.join(map(str, first['loc']))}: {first['msg']}",
            where=str(job.inputs["eval-reports"].path),
            remedy="run the evaluate stage again with --force evaluate",
        ) from None
    keep = job.settings.worst_samples
    return tuple(replace(report, worst_samples=report.worst_samples[:keep]) for report in reports)


def _engines(job: Job[CompareSettings], evidence: Mapping[str, Any] | None) -> tuple[EngineReport, ...]:
    if evidence is None:
        return ()
    from deploychain.engine.built import engine_reports

    plan = _read(job, "precision-plan") if job.has("precision-plan") else None
    modules = _read(job, "export-report").get("nodes", {}) if job.has("export-report") else {}
    return engine_reports(evidence, plan, modules)


def _provenance(
    job: Job[CompareSettings], measured: Mapping[str, Any], evidence: Mapping[str, Any] | None
) -> Provenance:
    built: Sequence[Mapping[str, Any]] = evidence["engines"] if evidence else ()
    flags = dict(measured["flags"])
    if job.has("train-log"):
        flags["trained"] = str(_read(job, "train-log").get("precision", "unknown"))
    for engine in built:
        flags[f"engine-{engine['name']}"] = _target(engine)
    makers = dict.fromkeys(f"{e['backend']} {e['version']}" for e in built if e.get("built"))
    return Provenance(
        pipeline=job.pipeline or measured["pipeline"],
        data_sha256=measured["data_sha256"],
        samples=measured["samples"],
        device=measured["device"],
        tensorrt=", ".join(makers) or None,
        versions=measured["versions"],
        flags=flags,
        created=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def _training(job: Job[CompareSettings]) -> Training | None:
    if not job.has("train-log"):
        return None
    log = _read(job, "train-log")
    if not log.get("step"):
        return None
    return Training(
        precision=str(log.get("precision", "unknown")),
        steps=int(log["step"]),
        scale_history=tuple((int(step), float(scale)) for step, scale in log.get("scale_history", ())),
        skipped=tuple(int(step) for step in log.get("skipped", ())),
    )


def _target(engine: Mapping[str, Any]) -> str:
    """What an engine was built for, in words."""
    if not engine.get("built"):
        return "not built"
    typed = engine.get("settings", {}).get("strongly_typed")
    typing = {True: ", strongly typed", False: ", weakly typed"}.get(typed, "")
    return f"compute capability {engine.get('compute_capability') or 'of this GPU'}{typing}"


def _read(job: Job[CompareSettings], kind: str, schema: str | None = None) -> dict[str, Any]:
    path = job.input(kind)
    remedy = "run the stage that makes it again with --force"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ArtifactError(f"not valid JSON: {error}", where=str(path), remedy=remedy) from None
    found = content.get("schema") if isinstance(content, dict) else None
    if not isinstance(content, dict) or (schema is not None and found != schema):
        raise ArtifactError(f"schema is {found!r}, this version reads {schema!r}", where=str(path), remedy=remedy)
    return content


def _summary(comparison: Comparison) -> dict[str, Any]:
    counts = {e.name: e.summary for e in comparison.engines if e.summary is not None}
    return {
        "rows": {e.stage: dict(e.metrics) if e.ran else f"not run: {e.reason}" for e in comparison.evals},
        "layers": {
            name: {
                "total": s.total,
                "as_asked": s.as_asked,
                "fallback": s.fallback,
                "demoted": s.demoted,
                "possible": s.possible,
                "expected": s.expected,
                "unknown": s.unknown,
            }
            for name, s in counts.items()
        },
    }


STAGE = Stage(
    name="compare",
    version=2,
    requires=("eval-reports",),
    accepts=("engine-evidence", "precision-plan", "export-report", "train-log"),
    produces=("comparison",),
    facts=(),
    uses_task=False,
    run=run,
)

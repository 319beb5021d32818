"""Where accuracy went along the chain: what each step changed against the step before it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from deploychain.records import Comparison, EvalReport

# What each stage is made from. An absent one is skipped to its own source.
_SOURCE = {
    "train-amp": "train-fp32",
    "weights": "train-fp32",
    "qat": "weights",
    "onnx-fp32": "weights",
    "onnx-fp16": "onnx-fp32",
    "onnx-int8": "qat",
    "engine-fp32": "onnx-fp32",
    "engine-fp16": "onnx-fp16",
    "engine-int8": "onnx-int8",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One stage against the one that it was made from. None: not known."""

    stage: str
    source: str
    metric: float | None  # main metric of this stage
    loss: float | None  # by how much the main metric got worse, in its own unit; negative when it got better
    error: float | None  # relative output error against the run's reference
    added: float | None  # what this step added to it, in quadrature: sqrt(error^2 - source's error^2)
    reason: str = ""  # why it was not measured


@dataclass(frozen=True, slots=True)
class Steps:
    """All steps in order, and the one that lost most."""

    metric: str
    rows: tuple[Step, ...]
    worst: str = ""  # empty when nothing was measured or nothing was lost
    by: str = ""  # "metric" or, where no step cost a whole sample, "output error"


def steps_of(comparison: Comparison) -> Steps:
    """Attribute the losses of a comparison to its steps."""
    evals = {e.stage: e for e in comparison.evals}
    name = next((n for e in comparison.evals if e.ran for n in e.metrics), "")
    direction = comparison.directions.get(name, "higher")
    rows = []
    for stage, report in evals.items():
        if stage not in _SOURCE:
            continue
        source = _source(stage, evals)
        before = evals.get(source)
        rows.append(_step(report, before, source, name, direction))
    # A change by less than one sample of a score between 0 and 1 says nothing.
    samples = max((e.samples for e in comparison.evals), default=0)
    least = 1.0 / samples if samples else 0.0
    lost = [r for r in rows if r.loss is not None and r.loss > 0 and r.loss >= least]
    if lost:
        return Steps(name, tuple(rows), max(lost, key=lambda r: r.loss or 0.0).stage, "metric")
    moved = [r for r in rows if r.added]
    if moved:
        return Steps(name, tuple(rows), max(moved, key=lambda r: r.added or 0.0).stage, "output error")
    return Steps(name, tuple(rows))


def _source(stage: str, evals: Mapping[str, EvalReport]) -> str:
    source = _SOURCE[stage]
    while source in _SOURCE and not (source in evals and evals[source].ran):
        source = _SOURCE[source]
    return source


def _step(
    report: EvalReport, before: EvalReport | None, source: str, name: str, direction: Literal["higher", "lower"]
) -> Step:
    if not report.ran:
        return Step(report.stage, source, None, None, None, None, report.reason)
    metric = report.metrics.get(name)
    known = before is not None and before.ran
    earlier = before.metrics.get(name) if known and before is not None else None
    loss = None
    if metric is not None and earlier is not None:
        loss = earlier - metric if direction == "higher" else metric - earlier
    error = 0.0 if report.exact else report.relative_error
    base = (0.0 if before.exact else before.relative_error) if known and before is not None else None
    if report.stage == report.reference:
        error = 0.0
    added = None
    if error is not None and base is not None:
        added = math.sqrt(max(error**2 - base**2, 0.0))
    return Step(report.stage, source, metric, loss, error, added)

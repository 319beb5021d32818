"""Steps of hand-made comparisons."""

from __future__ import annotations

import pytest

from deploychain.numerics.attribution import steps_of
from deploychain.records import COMPARISON_SCHEMA, Comparison, EvalReport, Provenance


def report(stage: str, top1: float | None, error: float | None, **more: object) -> EvalReport:
    metrics = {} if top1 is None else {"top1": top1}
    values: dict[str, object] = {
        "ran": top1 is not None,
        "metrics": metrics,
        "relative_error": error,
        "reference": "train-fp32",
    }
    return EvalReport(stage=stage, **{**values, **more})  # type: ignore[arg-type]


def comparison(*evals: EvalReport, direction: str = "higher") -> Comparison:
    return Comparison(COMPARISON_SCHEMA, Provenance(), evals, directions={"top1": direction})  # type: ignore[dict-item]


def test_each_step_is_measured_against_what_it_was_made_from() -> None:
    steps = steps_of(
        comparison(
            report("train-fp32", 0.90, 0.0),
            report("weights", 0.90, 0.0, exact=True),
            report("qat", 0.88, 0.05),
            report("onnx-fp32", 0.90, 1e-6),
            report("onnx-fp16", 0.85, 0.03),
            report("onnx-int8", 0.87, 0.13),
            report("engine-fp16", None, None, reason="no GPU"),
        )
    )
    rows = {r.stage: r for r in steps.rows}
    assert rows["onnx-int8"].source == "qat"
    assert rows["onnx-int8"].loss == pytest.approx(0.01)
    assert rows["onnx-int8"].added == pytest.approx(0.12)  # 5, 12, 13
    assert rows["onnx-fp16"].loss == pytest.approx(0.05)
    assert rows["engine-fp16"].loss is None
    assert rows["engine-fp16"].reason == "no GPU"
    assert (steps.worst, steps.by) == ("onnx-fp16", "metric")


def test_a_lower_metric_may_be_the_better_one() -> None:
    steps = steps_of(comparison(report("train-fp32", 0.5, 0.0), report("weights", 0.6, 0.1), direction="lower"))
    assert steps.rows[0].loss == pytest.approx(0.1)
    assert steps.worst == "weights"


def test_output_error_decides_where_no_metric_moved() -> None:
    steps = steps_of(
        comparison(report("train-fp32", 0.9, 0.0), report("weights", 0.9, 0.001), report("qat", 0.9, 0.07))
    )
    assert (steps.worst, steps.by) == ("qat", "output error")


def test_a_missing_step_is_skipped_to_its_own_source() -> None:
    steps = steps_of(comparison(report("train-fp32", 0.9, 0.0), report("onnx-int8", 0.8, 0.2)))
    assert steps.rows[0].source == "train-fp32"
    assert steps.rows[0].loss == pytest.approx(0.1)


def test_nothing_lost_names_no_step() -> None:
    steps = steps_of(comparison(report("train-fp32", 0.9, 0.0), report("weights", 0.9, 0.0, exact=True)))
    assert (steps.worst, steps.by) == ("", "")


def test_less_than_one_sample_is_no_loss() -> None:
    steps = steps_of(
        comparison(
            report("train-fp32", 0.9000, 0.0, samples=100),
            report("onnx-fp32", 0.9001, 1e-6, samples=100),
            report("onnx-fp16", 0.8999, 0.002, samples=100),
            report("qat", 0.9050, 0.04, samples=100),
        )
    )
    assert (steps.worst, steps.by) == ("qat", "output error")

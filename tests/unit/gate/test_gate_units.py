"""Two numbers of one name in two units are not compared: the verdict is incomplete, never a pass and never a gain."""

# ruff: noqa: E501 - one case a line

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from gate_synthetic import Change, both, fields, healthy, on_engine, slower, write

from deploychain.gate import accept, parse_limits
from deploychain.gate.baseline import load
from deploychain.gate.judgement import judge
from deploychain.gate.units import impossible, is_share, mixed, scaled
from deploychain.records import Comparison, load_comparison
from deploychain.verdicts import GateResult


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("top1", True), ("top-5", True), ("accuracy", True), ("val_acc", True), ("mAP", True), ("map50", True),
        ("mAP@0.5", True), ("mIoU", True), ("f1_score", True), ("Recall", True), ("error_rate", True),
        ("loss", False), ("accuracy_loss", False), ("psnr", False), ("rmse", False), ("wer", False), ("perplexity", False),
        ("mape", False), ("latency_top1", False), ("map_ms", False), ("capture", False),
    ],
)  # fmt: skip
def test_which_names_are_shares(name: str, share: bool) -> None:
    assert is_share(name) is share


@pytest.mark.parametrize(
    ("metric", "reference", "value", "direction", "clash"),
    [
        ("top1", 0.97, 97.0, "higher", True),
        ("top1", 97.0, 0.97, "higher", True),
        ("top1", 0.97, 48.6, "higher", True),  # half lost, and in per cent
        ("top1", 1.0, 99.0, "higher", True),
        ("top1", 0.2, 97.0, "higher", True),  # either unit: a share does not become 485 times as good
        ("top1", 0.97, 0.02, "higher", False),  # a collapse, in one unit
        ("top1", 97.0, 0.3, "higher", False),  # a loss in either unit
        ("top1", 97.0, 96.0, "higher", False),
        ("top1", 0.97, 0.96, "higher", False),
        ("top1", 0.97, 0.0, "higher", False),
        ("error_rate", 3.0, 0.03, "lower", True),
        ("error_rate", 0.03, 3.0, "lower", True),
        ("error_rate", 20.0, 0.9, "lower", True),  # 22 times as good
        ("error_rate", 0.9, 20.0, "lower", False),
        ("loss", 2.3, 0.02, "lower", False),  # a training that went well
        ("score", 0.5, 50.0, "higher", True),  # whatever it is, nothing gets a hundred times better
        ("score", 0.5, 5.0, "higher", False),
        ("psnr", 30.0, 33.0, "higher", False),
    ],
)
def test_mixed(metric: str, reference: float, value: float, direction: Any, clash: bool) -> None:
    assert mixed(metric, reference, value, direction) is clash


def test_decisions_are_certain() -> None:
    # The mean of right and wrong answers is at most 1: the other number is in another unit, whatever it is called.
    for value in (1.5, 3.0, 970.0):
        assert mixed("score", 0.9, value, "lower", reference_decided=True)
        assert mixed("score", value, 0.9, "lower", value_decided=True)
        assert not mixed("score", 0.9, value, "lower")
    assert not mixed("score", 0.9, 1.0, "higher", reference_decided=True, value_decided=True)


def test_what_no_share_can_be() -> None:
    assert impossible("map50", -1.0) and impossible("accuracy", 970.0)
    assert not impossible("accuracy", 100.0) and not impossible("accuracy", 0.0) and not impossible("score", -1.0)


def test_scales() -> None:
    assert scaled(2.0, 0.002) and scaled(2.0, 2000.0) and scaled(1.0, 0.0)
    assert not scaled(2.0, 20.0) and not scaled(2.0, 0.02)


def in_percent(c: Comparison) -> Comparison:
    """The whole run as a tool writes it that knows per cent only."""

    def scale(report: Any) -> Any:
        return dataclasses.replace(
            report,
            metrics={name: 100 * value for name, value in report.metrics.items()},
            per_class={m: {k: 100 * v for k, v in classes.items()} for m, classes in report.per_class.items()},
            per_sample={},
            sample_classes=(),
        )

    return dataclasses.replace(c, evals=tuple(scale(r) for r in c.evals))


CLASSES = {"top1": {str(c): 97.0 for c in range(10)}}
NUMBER = {"per_sample": {}, "per_class": {}, "sample_classes": ()}
FLOOR: dict[str, Any] = {"accuracy": [{"stage": "engine-int8", "metric": "top1", "floor": 0.92}]}

# name, change, limits, against a baseline, stages that a finding of kind "units" must name
CASES: list[tuple[str, Change, dict[str, Any], bool, set[str]]] = [
    ("the whole run in per cent", in_percent, {}, True, {"weights", "onnx-fp32", "onnx-fp16", "onnx-int8", "engine-fp16", "engine-int8"}),
    ("one stage in per cent", fields("engine-int8", metrics={"top1": 97.0}, **NUMBER), {}, False, {"engine-int8"}),
    ("one stage in per cent, with its decisions", fields("engine-int8", metrics={"top1": 97.0}), {}, False, {"engine-int8"}),
    ("the parent in per cent", fields("weights", metrics={"top1": 97.0}), {}, False, {"onnx-fp32", "onnx-fp16", "onnx-int8", "engine-fp16", "engine-int8"}),
    ("classes in per cent", fields("engine-int8", per_class=CLASSES), {}, False, {"engine-int8"}),
    ("a floor of a share, values in per cent", in_percent, FLOOR, False, {"engine-int8"}),
    ("a floor in per cent", lambda c: c, {"accuracy": [{"stage": "engine-int8", "floor": 92}]}, False, {"engine-int8"}),
    ("a ceiling in per cent", both(fields("engine-int8", metrics={"error_rate": 0.9}, **NUMBER), fields("weights", metrics={"top1": 0.97, "error_rate": 0.03}), lambda c: dataclasses.replace(c, directions={**c.directions, "error_rate": "lower"})), {"accuracy": [{"stage": "engine-int8", "metric": "error_rate", "floor": 5}]}, False, {"engine-int8"}),
    ("a drop in points of per cent", lambda c: c, {"accuracy": [{"stage": "engine-int8", "max_drop": 1}]}, False, {"engine-int8"}),
    ("a regression in points of per cent", lambda c: c, {"accuracy": [{"stage": "engine-int8", "max_regression": 1}]}, True, {"engine-int8"}),
    ("a share of minus one", fields("engine-int8", metrics={"top1": -1.0}, **NUMBER), {}, False, {"engine-int8"}),
    ("latency in microseconds", slower(1000.0), {}, True, {"engine-fp16"}),
    ("latency in seconds", slower(0.001), {}, True, {"engine-fp16"}),
    ("size in kilobytes", on_engine("int8", lambda e: dataclasses.replace(e, size_bytes=1000)), {"size": [{"max_increase": 25}]}, True, {"engine-int8"}),
]  # fmt: skip


def judged(change: Change, limits: dict[str, Any], against: bool, folder: Path) -> GateResult:
    accept(healthy(), folder / "b.json", reason="first", author="A")
    made = load_comparison(write(change(healthy()), folder / "run") / "comparison.json")
    return judge(made, parse_limits({"resamples": 500, **limits}, ""), load(folder / "b.json") if against else None)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].replace(" ", "_"))
def test_two_units_are_incomplete(case: tuple[str, Change, dict[str, Any], bool, set[str]], tmp_path: Path) -> None:
    _, change, limits, against, stages = case
    result = judged(change, limits, against, tmp_path)
    shown = [f"{c.status.value} {c.stage} {c.kind} {c.message}" for c in result.findings]
    assert {c.stage for c in result.findings if c.kind == "units"} == stages, shown
    assert (result.verdict.value, result.exit_code) == ("incomplete", 4), shown
    assert all(c.level == "error" for c in result.findings if c.kind == "units" and c.stage != "engine-fp16")


def test_a_run_and_a_baseline_in_per_cent_are_compared(tmp_path: Path) -> None:
    whole = in_percent(healthy())
    accept(whole, tmp_path / "b.json", reason="first", author="A")
    result = judge(whole, parse_limits({"resamples": 500}, ""), load(tmp_path / "b.json"))
    assert result.exit_code == 0, [c.message for c in result.findings]
    worse = dataclasses.replace(
        whole,
        evals=tuple(
            dataclasses.replace(r, metrics={"top1": 60.0}) if r.stage == "engine-int8" else r for r in whole.evals
        ),
    )
    assert judge(worse, parse_limits({"resamples": 500}, ""), load(tmp_path / "b.json")).exit_code == 1

"""Latency: parts of one run are no repeats, each device has a baseline of its own, and older baselines are read."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest
from gate_synthetic import DEVICE, healthy, latency, slower

from deploychain.device.measured import latency_of
from deploychain.errors import ArtifactError
from deploychain.gate import accept, parse_limits
from deploychain.gate.baseline import key_values, load, runs_and_parts
from deploychain.gate.judgement import judge
from deploychain.gate.noise import slowdown
from deploychain.records import Comparison, Latency
from deploychain.verdicts import Check, GateResult

STEADY, WILD = (0.99, 0.995, 1.0, 1.005, 1.01), (0.7, 0.8, 1.0, 1.2, 1.4)
LIMIT = {"latency": [{"stage": "engine-fp16", "max_increase": 20}], "resamples": 500}


def one_run(p50: float, scatter: tuple[float, ...], **more: Any) -> Latency:
    return Latency("engine-fp16", DEVICE, p50_ms=p50, parts=tuple(p50 * x for x in scatter), **more)


def run_of(*latencies: Latency) -> Comparison:
    return dataclasses.replace(healthy(), latency=(*latencies, latency("engine-int8", 1.2)))


def judged(now: Comparison, then: Comparison, folder: Path, **limits: Any) -> GateResult:
    accept(then, folder / "b.json", reason="first", author="A")
    return judge(now, parse_limits({**LIMIT, **limits}, ""), load(folder / "b.json"))


def checks(result: GateResult, stage: str = "engine-fp16") -> list[Check]:
    return [c for c in result.checks if c.kind == "latency" and c.stage == stage]


@pytest.mark.parametrize(
    ("factor", "scatter", "status"),
    [
        (1.05, STEADY, "pass"),
        (1.30, STEADY, "inconclusive"),  # between the limit and twice the limit: another build could be the reason
        (1.45, STEADY, "fail"),
        (1.05, WILD, "inconclusive"),  # the run does not agree with itself
        (1.45, WILD, "inconclusive"),
    ],
)
def test_parts_of_one_run_are_one_run(factor: float, scatter: tuple[float, ...], status: str, tmp_path: Path) -> None:
    result = judged(run_of(one_run(2.0 * factor, scatter)), run_of(one_run(2.0, STEADY)), tmp_path)
    (check,) = checks(result)
    assert check.status.value == status, check.message
    assert "one run on a side, so that the variation between builds is not known" in check.message


def test_the_same_numbers_as_repeats_are_certain(tmp_path: Path) -> None:
    result = judged(slower(1.30)(healthy()), healthy(), tmp_path)
    assert [c.status.value for c in checks(result)] == ["fail"]


def test_repeats_on_one_side_do_not_make_up_for_one_run_on_the_other(tmp_path: Path) -> None:
    (check,) = checks(judged(run_of(one_run(2.6, STEADY)), healthy(), tmp_path))
    assert check.status.value == "inconclusive"


def test_declared_noise_is_used_where_there_is_one_run(tmp_path: Path) -> None:
    limits = {"latency": [{"stage": "engine-fp16", "max_increase": 20, "noise": 1}]}
    (check,) = checks(judged(run_of(one_run(2.6, STEADY)), run_of(one_run(2.0, STEADY)), tmp_path, **limits))
    assert check.status.value == "fail" and "declared noise" in check.message


def test_what_parts_allow_is_a_student_interval_of_one_part_each() -> None:
    parts = (1.9, 2.0, 2.1)
    loss = slowdown((2.0,), (2.2,), draws=4000, seed=1, parts=(parts, tuple(1.1 * x for x in parts)))
    spread = statistics.stdev(map(math.log, parts))  # the same on both sides
    bound = 2.132 * math.sqrt(2) * spread  # Student's t, 4 degrees of freedom, 95 % on one side
    assert loss.bounds is None and loss.within is not None
    assert loss.within[0] == pytest.approx(100 * (1.1 * math.exp(-bound) - 1), abs=1.0)
    assert loss.within[1] == pytest.approx(100 * (1.1 * math.exp(bound) - 1), abs=1.0)
    assert slowdown((2.0,), (2.2,), draws=500, seed=1).within is None


def test_the_device_writes_parts_and_no_repeats() -> None:
    times = [2.0] * 10 + [3.0] * 10
    made = latency_of(times, "engine-fp16", DEVICE, clock="c", shapes={}, warm_up_ms=200, backend="x")
    assert made.repeats == () and made.parts == (2.0, 2.0, 2.5, 3.0, 3.0)
    # Results from before there were parts hold them as repeats; how it was measured tells.
    before = dataclasses.replace(made, repeats=made.parts, parts=())
    assert runs_and_parts(before) == ((), made.parts)
    assert runs_and_parts(latency("engine-fp16", 2.0))[1] == ()


# --- devices

SMALL = "Orin Nano 8GB"


def two(fast: float = 2.0, slow: float = 5.0) -> Comparison:
    return run_of(latency("engine-fp16", fast), latency("engine-fp16", slow, device=SMALL))


def test_each_device_is_compared_with_itself(tmp_path: Path) -> None:
    found = {c.message.split(" on ")[1][:9]: c for c in checks(judged(two(2.0, 7.5), two(), tmp_path))}
    assert {name: c.status.value for name, c in found.items()} == {"Orin NX 1": "pass", "Orin Nano": "fail"}
    assert [c.baseline for c in found.values()] == [2.0, 5.0]
    kept = load(tmp_path / "b.json").latency["engine-fp16"]
    assert {name: x.p50_ms for name, x in kept.items()} == {DEVICE: 2.0, SMALL: 5.0}


def test_a_device_that_is_gone_is_missed(tmp_path: Path) -> None:
    result = judged(healthy(), two(), tmp_path)
    assert result.exit_code == 4
    assert [c.message for c in result.findings if c.kind == "missing"] == [
        f"the latency of engine-fp16 on {SMALL} is in the baseline and was not measured in this run"
    ]


def test_a_device_that_is_new_has_nothing_to_compare(tmp_path: Path) -> None:
    result = judged(two(), healthy(), tmp_path, latency=[{"max_increase": 20, "required": False}])
    assert result.exit_code == 0
    assert sorted(c.status.value for c in checks(result)) == ["note", "pass"]
    assert judged(two(), healthy(), tmp_path, latency=[{"max_increase": 20}]).exit_code == 4


def test_another_device_alone_cannot_be_compared(tmp_path: Path) -> None:
    now = run_of(latency("engine-fp16", 2.0, device=SMALL))
    result = judged(now, healthy(), tmp_path)
    assert result.exit_code == 3 and "Orin NX 16GB in the baseline" in checks(result)[0].message


def test_the_device_under_test_may_change(tmp_path: Path) -> None:
    made = [dataclasses.replace(x, device=SMALL) for x in healthy().latency]
    now = dataclasses.replace(
        healthy(),
        latency=tuple(made),
        provenance=dataclasses.replace(healthy().provenance, device=SMALL),
    )
    assert judged(now, healthy(), tmp_path, expect_change=["device"]).exit_code == 0
    gone = dataclasses.replace(now, latency=now.latency[1:])
    result = judged(gone, healthy(), tmp_path, expect_change=["device"])
    assert "the latency of engine-fp16 is in the baseline" in " ".join(c.message for c in result.findings)


def test_the_history_keeps_both_devices() -> None:
    values = key_values(two())
    assert values["engine-fp16/p50 ms"] == 2.0 and values[f"engine-fp16/p50 ms on {SMALL}"] == 5.0


def test_two_latencies_of_one_device_are_no_baseline(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="twice"):
        accept(run_of(latency("engine-fp16", 2.0), latency("engine-fp16", 3.0)), tmp_path / "b", reason="r", author="A")
    with pytest.raises(ArtifactError, match="no time"):
        accept(run_of(one_run(2.0, (0.0, 1.0))), tmp_path / "b", reason="r", author="A")


def test_p50_above_p99_is_no_measurement(tmp_path: Path) -> None:
    result = judged(run_of(one_run(2.0, STEADY, p99_ms=0.0021)), healthy(), tmp_path)
    assert result.exit_code == 4
    assert "the p50 latency of engine-fp16 on Orin NX 16GB lies above its own p99" in result.findings[0].message


# --- baselines of the first schema


def older(path: Path) -> None:
    """Rewrite a baseline as the first schema had it: one device a stage, and a digest of its own."""
    document = json.loads(path.read_text())
    document["schema"] = "deploychain.baseline/1"
    document["latency"] = {
        stage: {"device": device, "p50_ms": x["p50_ms"], "p99_ms": x["p99_ms"], "repeats": x["repeats"]}
        for stage, devices in document["latency"].items()
        for device, x in devices.items()
    }
    del document["digest"]
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    path.write_text(json.dumps({**document, "digest": "sha256:" + hashlib.sha256(text.encode()).hexdigest()}))


def test_an_older_baseline_is_read_and_its_repeats_count_as_one_run(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    accept(healthy(), path, reason="first", author="A")
    older(path)
    old = load(path)
    kept = old.latency["engine-fp16"][DEVICE]
    assert (kept.p50_ms, kept.repeats) == (2.0, ()) and kept.parts == pytest.approx((1.98, 1.99, 2.0, 2.01, 2.02))
    rules = parse_limits(LIMIT, "")
    assert judge(healthy(), rules, old).exit_code == 0
    (check,) = checks(judge(slower(1.30)(healthy()), rules, old))
    assert check.status.value == "inconclusive" and "one run on a side" in check.message
    assert judge(slower(1.45)(healthy()), rules, old).exit_code == 1
    # Accepting again writes the new schema and keeps the history.
    accept(healthy(), path, reason="second", author="A")
    assert json.loads(path.read_text())["schema"] == "deploychain.baseline/2"
    assert [entry.reason for entry in load(path).history] == ["first", "second"]


@pytest.mark.parametrize("latency", [[], "x", {"engine-fp16": 3}, {"engine-fp16": {"device": "d", "p50_ms": []}}])
def test_an_older_baseline_of_another_form_is_damaged(latency: Any, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    accept(healthy(), path, reason="first", author="A")
    older(path)
    document = json.loads(path.read_text())
    document["latency"] = latency
    del document["digest"]
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    path.write_text(json.dumps({**document, "digest": "sha256:" + hashlib.sha256(text.encode()).hexdigest()}))
    with pytest.raises(ArtifactError, match="latency"):
        load(path)

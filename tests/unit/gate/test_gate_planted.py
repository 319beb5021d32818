"""The planted matrix: one change each, with the verdict, exit code and finding that a careful reviewer would give.

The healthy run has 5000 samples, 4850 right in FP32 (97 %), 2 changed decisions in FP16 and 40 in INT8.
"""

# ruff: noqa: E501 - one case a line is what makes the matrix readable

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from gate_synthetic import (
    Change,
    add_layers,
    both,
    copy_layer,
    engine,
    fields,
    healthy,
    latency,
    layer,
    lose,
    on_engine,
    provenance,
    relayer,
    same,
    slower,
    stage,
    summarised,
    write,
)

from deploychain.gate import accept
from deploychain.gate.session import judge_run
from deploychain.precision import Precision
from deploychain.records import LayerKind, LayerVerdict

PASS, FAIL, ODD, HALF, UNSURE = (
    ("pass", 0),
    ("fail", 1),
    ("not-comparable", 3),
    ("incomplete", 4),
    ("inconclusive", 5),
)


@dataclass
class Case:
    name: str
    change: Change
    expected: tuple[str, int]
    finding: tuple[str, str, str] | None = None  # stage, kind, node of a finding that must be there
    limits: dict[str, Any] = field(default_factory=dict)
    baseline: Any = None  # text -> text: what somebody did to the baseline file; "delete"
    accepted: Change = same  # what the baseline was accepted from
    expect_change: tuple[str, ...] = ()


def _edit(key: str, value: Any) -> Any:
    def edit(text: str) -> str:
        document = json.loads(text)
        document[key] = value
        return json.dumps(document)

    return edit


def _split_fusion(e: Any) -> Any:
    first = e.layers[0]
    parts = [dataclasses.replace(first, name=n, onnx_nodes=(n,)) for n in first.onnx_nodes]
    return summarised(dataclasses.replace(e, layers=(*parts, *e.layers[1:])))


FALLBACK = {"compute": Precision.FP32, "verdict": LayerVerdict.FALLBACK}
ABSOLUTE = {"accuracy": [{"stage": "engine-*", "metric": "top1", "max_drop": 0.001, "practical": 0}]}
AGAINST_BASELINE = {"accuracy": [{"stage": "*", "metric": "top1", "max_regression": 0.005}]}
STRICT_COPIES = {"layers": [{"max_new_copies": 0}]}
NO_SAMPLES = {"per_sample": {}, "sample_classes": ()}
B1 = "b1/conv2 + b1/conv2/relu"

CASES = [
    Case("no change", same, PASS),
    # accuracy, against the parent and the baseline: 10, 50 and 250 of 5000 are 0.2, 1 and 5 points
    Case("fp16 -0.2 points: twice the limit, within its noise", lose("engine-fp16", 10), UNSURE, ("engine-fp16", "retention", "")),
    Case("fp16 -1 point", lose("engine-fp16", 50), FAIL, ("engine-fp16", "retention", "")),
    Case("fp16 -5 points", lose("engine-fp16", 250), FAIL, ("engine-fp16", "regression", "")),
    Case("int8 -0.2 points", lose("engine-int8", 10), PASS),
    Case("int8 -1 point: just beyond the limit, and certainly a loss", lose("engine-int8", 50), FAIL, ("engine-int8", "retention", "")),
    Case("int8 -2 points: twice the limit", lose("engine-int8", 100), FAIL, ("engine-int8", "retention", "")),
    Case("int8 -5 points", lose("engine-int8", 250), FAIL, ("engine-int8", "retention", "")),
    Case("onnx-int8 -5 points, engine healthy", lose("onnx-int8", 250), FAIL, ("onnx-int8", "retention", "")),
    Case("fp16 +1 point", lose("engine-fp16", 0, 50), PASS),
    Case("absolute drop limit, -1 point", lose("engine-int8", 50), FAIL, ("engine-int8", "drop", ""), ABSOLUTE),
    Case("absolute drop limit, -5 points", lose("engine-fp16", 250), FAIL, ("engine-fp16", "drop", ""), ABSOLUTE),
    Case("all stages -2 points since the baseline", both(*(lose(s, 100) for s in ("weights", "onnx-fp32", "onnx-fp16", "onnx-int8", "engine-fp16", "engine-int8"))), FAIL, ("weights", "regression", ""), AGAINST_BASELINE),
    Case("floor kept", same, PASS, None, {"accuracy": [{"stage": "engine-int8", "floor": 0.96}]}),
    Case("floor broken", lose("engine-int8", 250), FAIL, ("engine-int8", "floor", ""), {"accuracy": [{"stage": "engine-int8", "floor": 0.96}]}),
    Case("floor a hair above the value", same, UNSURE, ("engine-int8", "floor", ""), {"accuracy": [{"stage": "engine-int8", "floor": 0.971}]}),
    Case("one class lost", lose("engine-int8", 250, only_class=3), FAIL, ("engine-int8", "worst-class", "")),
    Case("one class halved, average hidden by gains", both(lose("engine-int8", 240, only_class=7), lose("engine-int8", 0, 120)), FAIL, ("engine-int8", "worst-class", ""), {"accuracy": [{"stage": "engine-int8", "worst_class": 90}]}),
    Case("agreement kept", same, PASS, None, {"accuracy": [{"stage": "engine-int8", "agreement": 0.98}]}),
    Case("agreement lost: 300 flips that cancel out", lose("engine-int8", 130, 130), FAIL, ("engine-int8", "agreement", ""), {"accuracy": [{"stage": "engine-int8", "agreement": 0.98}]}),
    # metrics without per-sample values: the number alone
    Case("no per-sample values, -0.2 points fp16", both(lose("engine-fp16", 10), fields("engine-fp16", **NO_SAMPLES)), UNSURE, ("engine-fp16", "retention", ""), {}, None, fields("engine-fp16", **NO_SAMPLES)),
    Case("no per-sample values, and the baseline has them", fields("engine-fp16", **NO_SAMPLES), HALF, ("engine-fp16", "samples", "")),
    Case("no per-sample values, -5 points fp16", both(lose("engine-fp16", 250), fields("engine-fp16", **NO_SAMPLES)), FAIL, ("engine-fp16", "retention", "")),
    # layers
    Case("an fp16 layer turned fp32", relayer("fp16", 2, **FALLBACK), FAIL, ("engine-fp16", "fallback", B1)),
    Case("an fp16 layer turned fp32, nobody asked", relayer("fp16", 2, compute=Precision.FP32, asked=None, verdict=LayerVerdict.EXPECTED), FAIL, ("engine-fp16", "lost-precision", B1)),
    Case("a planned fp32 layer, also in the baseline", relayer("fp16", 2, compute=Precision.FP32, verdict=LayerVerdict.EXPECTED), PASS, None, {}, None, relayer("fp16", 2, compute=Precision.FP32, verdict=LayerVerdict.EXPECTED)),
    Case("fallback allowed by pattern", relayer("fp16", 2, **FALLBACK), PASS, None, {"layers": [{"node": "b2/*", "max_fallback": 0}]}),
    Case("fallback forbidden by pattern", relayer("fp16", 2, **FALLBACK), FAIL, ("engine-fp16", "fallback", B1), {"layers": [{"engine": "fp16", "node": "b1/*", "max_fallback": 0}]}),
    Case("an int8 layer in fp16", relayer("int8", 2, compute=Precision.FP16, verdict=LayerVerdict.FALLBACK), FAIL, ("engine-int8", "fallback", B1)),
    Case("a layer that cannot be judged", relayer("fp16", 2, compute=None, verdict=LayerVerdict.UNKNOWN), HALF, ("engine-fp16", "unknown-layers", B1)),
    Case("no layer evidence at all", on_engine("fp16", lambda e: dataclasses.replace(e, layers=(), summary=None)), HALF, ("engine-fp16", "missing", "")),
    Case("share of layers kept", same, PASS, None, {"layers": [{"min_share": 1.0, "min_time_share": 1.0}]}),
    Case("share of time lost", relayer("fp16", 2, time_ms=9.0, **FALLBACK), FAIL, ("engine-fp16", "time-share", ""), {"layers": [{"min_time_share": 0.9}]}),
    Case("share unsure: one unknown layer", relayer("fp16", 2, verdict=LayerVerdict.UNKNOWN), UNSURE, ("engine-fp16", "layer-share", ""), {"layers": [{"min_share": 0.9}]}),
    Case("share of time without a profile", relayer("fp16", 2, time_ms=None), HALF, ("engine-fp16", "time-share", ""), {"layers": [{"min_time_share": 0.9}]}),
    Case("a fusion lost", on_engine("int8", _split_fusion), FAIL, ("engine-int8", "lost-fusion", "stem + stem/relu"), {"layers": [{"max_lost_fusions": 0}]}),
    Case("a fusion lost: a warning by default", on_engine("int8", _split_fusion), PASS, ("engine-int8", "lost-fusion", "stem + stem/relu")),
    Case("a cast added", add_layers("fp16", copy_layer("cast")), FAIL, ("engine-fp16", "new-copies", ""), STRICT_COPIES),
    Case("a cast added: a warning by default", add_layers("fp16", copy_layer("cast")), PASS, ("engine-fp16", "new-copies", "")),
    Case("too many casts", add_layers("fp16", copy_layer("cast")), FAIL, ("engine-fp16", "copies", ""), {"layers": [{"max_copies": 1}]}),
    Case("a layer lowered: a warning by default", relayer("fp16", 2, compute=Precision.INT8), PASS, ("engine-fp16", "lowered-precision", B1)),
    Case("a sensitive layer quantised: the accuracy finding names its node", both(relayer("int8", 2, compute=Precision.INT8), lose("engine-int8", 250)), FAIL, ("engine-int8", "retention", B1), {}, None, relayer("int8", 2, compute=Precision.FP16)),
    # the same outputs are certainly as good, however few the samples
    Case("bit-equal outputs against a limit that 5000 samples cannot show", fields("onnx-fp32", exact=True, max_abs_error=0.0, relative_error=0.0), PASS, None, {"accuracy": [{"stage": "onnx-fp32", "max_drop": 0, "practical": 0}]}),
    Case("equal but for rounding", fields("onnx-fp32", relative_error=3e-7), PASS, None, {"accuracy": [{"stage": "onnx-fp32", "max_drop": 0, "practical": 0}]}),
    Case("equal decisions, other outputs", fields("onnx-fp32", relative_error=1e-3), UNSURE, ("onnx-fp32", "drop", ""), {"accuracy": [{"stage": "onnx-fp32", "max_drop": 0, "practical": 0}]}),
    # latency and size
    Case("latency +5 %", slower(1.05), PASS),
    Case("latency +15 %: a warning by default", slower(1.15), PASS, ("engine-fp16", "latency", "")),
    Case("latency +15 % against a limit of 10 %", slower(1.15), FAIL, ("engine-fp16", "latency", ""), {"latency": [{"max_increase": 10}]}),
    Case("latency +30 %", slower(1.30), FAIL, ("engine-fp16", "latency", "")),
    Case("latency +30 % in one noisy run", slower(1.30, repeats=()), UNSURE, ("engine-fp16", "latency", "")),
    Case("latency +30 %, repeats that disagree", slower(1.30, repeats=(2.0, 3.4, 2.2)), UNSURE, ("engine-fp16", "latency", "")),
    Case("latency above an absolute limit", same, FAIL, ("engine-fp16", "latency", ""), {"latency": [{"stage": "engine-fp16", "device": "Orin NX 16GB", "max_p50_ms": 1.5}]}),
    Case("latency limit for another device", same, HALF, ("engine-fp16", "missing", ""), {"latency": [{"stage": "engine-fp16", "device": "Orin Nano", "max_p50_ms": 9.0}]}),
    Case("latency not measured any more", lambda c: dataclasses.replace(c, latency=()), HALF, ("engine-fp16", "missing", "")),
    Case("latency NaN", slower(1.0, p50_ms=None, repeats=()), HALF, ("engine-fp16", "latency", ""), {"latency": [{"stage": "engine-fp16", "device": "Orin*", "max_p50_ms": 9.0}]}),
    Case("size doubled against a limit", on_engine("fp16", lambda e: dataclasses.replace(e, size_bytes=2_000_000)), FAIL, ("engine-fp16", "size", ""), {"size": [{"max_increase": 25}]}),
    Case("size above an absolute limit", same, FAIL, ("engine-int8", "size", ""), {"size": [{"engine": "int8", "max_bytes": 500_000}]}),
    # missing evidence is never a pass
    Case("NaN metric", fields("engine-fp16", metrics={"top1": None}), HALF, ("engine-fp16", "non-finite", "")),
    Case("NaN per-sample value", fields("engine-fp16", metrics={"top1": None}, per_sample={"top1": (None,) * 5000}), HALF, ("engine-fp16", "non-finite", "")),
    Case("NaN in the outputs", fields("engine-fp16", non_finite=3), FAIL, ("engine-fp16", "non-finite", "")),
    Case("missing stage", stage("engine-int8", lambda r: None), HALF, ("engine-int8", "missing", "")),
    Case("stage that did not run", fields("engine-int8", ran=False, reason="no GPU"), HALF, ("engine-int8", "missing", "")),
    Case("stage that did not run, waived", fields("engine-int8", ran=False, reason="no GPU"), PASS, ("engine-int8", "missing", ""), {"waivers": [{"stage": "engine-int8", "kind": "missing", "reason": "engines run on the bench only"}]}),
    Case("waiver that ended", fields("engine-int8", ran=False, reason="no GPU"), HALF, ("engine-int8", "waiver", ""), {"waivers": [{"stage": "engine-int8", "kind": "missing", "reason": "engines run on the bench only", "until": "2020-01-31"}]}),
    Case("engine not built", on_engine("int8", lambda e: dataclasses.replace(e, built=False, reason="no tactic for b2/conv1")), HALF, ("engine-int8", "missing", "")),
    Case("engine gone", on_engine("int8", lambda e: None), HALF, ("engine-int8", "missing", "")),
    Case("limit on a stage that is not there", same, HALF, ("engine-fp8", "missing", ""), {"accuracy": [{"stage": "engine-fp8", "retention": 99}]}),
    Case("limit on a metric that is not there", same, HALF, ("engine-fp16", "missing", ""), {"accuracy": [{"stage": "engine-fp16", "metric": "map50", "retention": 99}]}),
    Case("direction unknown", lambda c: dataclasses.replace(c, directions={}), HALF, ("engine-fp16", "missing", ""), {"accuracy": [{"stage": "engine-fp16", "retention": 99}]}),
    Case("required stage not measured", same, HALF, ("engine-bf16", "missing", ""), {"require": ["engine-bf16"]}),
    Case("fewer samples in one stage", fields("engine-int8", samples=500), HALF, ("engine-int8", "samples", "")),
    Case("nothing judged", lambda c: dataclasses.replace(c, engines=(), latency=()), HALF, None, {"accuracy": [], "layers": [{"required": False, "max_fallback": 0}], "latency": [], "size": []}, None, lambda c: dataclasses.replace(c, engines=(), latency=())),
    # comparability
    Case("fewer samples everywhere", provenance(samples=500), ODD, ("", "baseline", "")),
    Case("other data", provenance(data_sha256="b" * 64), ODD, ("", "baseline", "")),
    Case("data unknown", provenance(data_sha256=None), ODD, ("", "baseline", "")),
    Case("other data cannot be expected away", provenance(data_sha256="b" * 64, tensorrt="11.0"), ODD, ("", "baseline", ""), {}, None, same, ("tensorrt",)),
    Case("other TensorRT", provenance(tensorrt="10.16.2.10"), ODD, ("", "baseline", "")),
    Case("other TensorRT, the change under test", provenance(tensorrt="10.16.2.10"), PASS, None, {}, None, same, ("tensorrt",)),
    Case("other TensorRT, under test, and worse", both(provenance(tensorrt="10.16.2.10"), lose("engine-fp16", 250)), FAIL, ("engine-fp16", "regression", ""), {}, None, same, ("tensorrt",)),
    Case("other device", provenance(device="Orin Nano 8GB"), ODD, ("", "baseline", "")),
    Case("other flags", provenance(flags={"timing_cache": "off"}), ODD, ("", "baseline", "")),
    Case("other pipeline", provenance(pipeline="other"), ODD, ("", "baseline", "")),
    Case("metric turned round", lambda c: dataclasses.replace(c, directions={"top1": "lower"}), ODD, ("", "baseline", "")),
    Case("not comparable, and broken all the same", both(provenance(data_sha256="b" * 64), lose("engine-fp16", 250)), FAIL, ("engine-fp16", "retention", "")),
    Case("no baseline", same, ODD, ("", "baseline", ""), {}, "delete"),
    Case("hand-edited baseline", lose("engine-int8", 250), FAIL, ("", "baseline", ""), {}, _edit("stages", {})),
    Case("hand-edited reason", same, ODD, ("", "baseline", ""), {}, lambda text: text.replace("first", "fixed")),
    Case("baseline of a newer schema", same, ODD, ("", "baseline", ""), {}, _edit("schema", "deploychain.baseline/3")),
    Case("baseline cut", same, ODD, ("", "baseline", ""), {}, lambda text: text[: len(text) // 2]),
    Case("baseline with NaN", same, ODD, ("", "baseline", ""), {}, lambda text: text.replace("0.97", "NaN", 1)),
    Case("baseline of conflict markers", same, ODD, ("", "baseline", ""), {}, lambda text: "<<<<<<< HEAD\n" + text),
]  # fmt: skip


def test_the_matrix_is_large_enough() -> None:
    assert len(CASES) >= 40
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_planted(case: Case, tmp_path: Path) -> None:
    baseline = tmp_path / "gate-baseline.json"
    accept(case.accepted(healthy()), baseline, reason="first", author="A. Uthor")
    if case.baseline == "delete":
        baseline.unlink()
    elif case.baseline is not None:
        text = baseline.read_text()
        damaged = case.baseline(text)
        assert damaged != text
        baseline.write_text(damaged)
    limits = tmp_path / "gate.yaml"
    limits.write_text(json.dumps(case.limits))  # JSON is YAML
    run = write(case.change(healthy()), tmp_path / "run")
    session = judge_run(run, limits=limits, expect_change=case.expect_change)
    result = session.result
    shown = "\n".join(f"{c.status.value} {c.stage} {c.kind} {c.node} {c.message}" for c in result.findings)
    assert (result.verdict.value, result.exit_code) == case.expected, shown
    if case.finding is not None:
        assert case.finding in [(c.stage, c.kind, c.node) for c in result.findings], shown


def test_a_damaged_comparison_could_not_be_measured(tmp_path: Path) -> None:
    for text in ("", "{", "[]", '{"schema": "deploychain.comparison/9"}', '{"schema": "deploychain.comparison/1"}'):
        (tmp_path / "comparison.json").write_text(text)
        session = judge_run(tmp_path, without_baseline=True)
        assert (session.result.verdict.value, session.result.exit_code) == ("incomplete", 4), text
    assert judge_run(tmp_path / "nowhere").result.exit_code == 4


def test_a_warning_never_decides_and_is_always_shown(tmp_path: Path) -> None:
    run = write(add_layers("fp16", copy_layer("cast"))(healthy()), tmp_path / "run")
    accept(healthy(), tmp_path / "b.json", reason="first", author="A")
    result = judge_run(run, baseline=tmp_path / "b.json").result
    (found,) = [c for c in result.findings if c.kind == "new-copies"]
    assert found.level == "warning" and result.exit_code == 0


def test_policy_warn_changes_the_exit_code_and_not_the_verdict(tmp_path: Path) -> None:
    run = write(lose("engine-fp16", 10)(healthy()), tmp_path / "run")
    accept(healthy(), tmp_path / "b.json", reason="first", author="A")
    result = judge_run(run, baseline=tmp_path / "b.json", on_inconclusive="warn").result
    assert (result.verdict.value, result.exit_code) == ("inconclusive", 0)


def test_an_inconclusive_finding_says_what_would_settle_it(tmp_path: Path) -> None:
    # Ten decisions of 5000 lost, one gained either way: a loss of 0.206 % that is not quite certain family-wise.
    accept(healthy(), tmp_path / "b.json", reason="first", author="A")
    run = write(lose("engine-fp16", 10)(healthy()), tmp_path / "run")
    (found,) = [c for c in judge_run(run, baseline=tmp_path / "b.json").result.findings if c.kind == "retention"]
    assert found.needed is not None and 0 < found.needed < 5_000
    assert f"{found.needed} more samples would settle it" in found.message


def test_unknown_layers_are_said_beside_a_count_of_zero(tmp_path: Path) -> None:
    opaque = layer("attn", Precision.FP16, kind=LayerKind.OPAQUE, verdict=LayerVerdict.POSSIBLE)
    made = dataclasses.replace(engine("fp16", Precision.FP16), layers=(*engine("fp16", Precision.FP16).layers, opaque))
    comparison = dataclasses.replace(healthy(), engines=(made,))
    result = judge_run(write(comparison, tmp_path), without_baseline=True).result
    (found,) = [c for c in result.checks if c.kind == "fallback"]
    assert found.value == 0 and "1 opaque could not be judged" in found.message


def test_identical_latency_has_no_increase(tmp_path: Path) -> None:
    accept(healthy(), tmp_path / "b.json", reason="first", author="A")
    result = judge_run(write(healthy(), tmp_path / "run"), baseline=tmp_path / "b.json").result
    found = [c for c in result.checks if c.kind == "latency" and c.stage == "engine-int8"]
    assert [c.value for c in found] == [latency("engine-int8", 1.2).p50_ms] * 2
    assert all(c.loss == pytest.approx(0.0, abs=1e-3) for c in found)


def test_a_node_in_several_layers_is_compared_by_its_own_arithmetic(tmp_path: Path) -> None:
    # An INT8 convolution, and the FP32 layer that requantises for it, both name the node, as INT8 builders do.
    border = layer("b1/conv1", Precision.INT8, name="requantise", compute=Precision.FP32, verdict=LayerVerdict.EXPECTED)
    made = add_layers("int8", border)(healthy())
    accept(made, tmp_path / "b.json", reason="first", author="A")
    kinds = {"lost-precision", "lowered-precision", "lost-fusion"}
    again = judge_run(write(made, tmp_path / "same"), baseline=tmp_path / "b.json").result
    assert again.verdict.value == "pass" and not [c for c in again.findings if c.kind in kinds]
    worse = relayer("int8", 1, compute=Precision.FP16)(made)
    found = judge_run(write(worse, tmp_path / "worse"), baseline=tmp_path / "b.json").result.findings
    assert [(c.kind, c.node) for c in found if c.kind in kinds] == [("lost-precision", "b1/conv1 + b1/conv1/relu")]

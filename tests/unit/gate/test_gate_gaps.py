"""Evidence that is missing or contradicts itself is never a pass: one hole each, planted into a run that passes."""

# ruff: noqa: E501 - one case a line

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gate_synthetic import (
    Change,
    both,
    copy_layer,
    engine,
    fields,
    healthy,
    labels,
    on_engine,
    relayer,
    report,
    slower,
    stage,
    summarised,
    write,
)

from deploychain.errors import ArtifactError, ConfigError
from deploychain.gate import accept, parse_limits
from deploychain.gate.baseline import load
from deploychain.gate.judgement import judge
from deploychain.precision import Precision
from deploychain.records import Comparison, EngineReport, LayerKind, LayerVerdict, load_comparison
from deploychain.verdicts import GateResult

OPAQUE = {"compute": None, "kind": LayerKind.OPAQUE, "verdict": LayerVerdict.POSSIBLE}


def every_layer(name: str, **values: Any) -> Change:
    def make(e: EngineReport) -> EngineReport:
        made = (dataclasses.replace(x, **values) if x.kind is LayerKind.COMPUTE else x for x in e.layers)
        return summarised(dataclasses.replace(e, layers=tuple(made)))

    return on_engine(name, make)


def swallowed(e: EngineReport) -> EngineReport:
    """One foreign node holds every node of the engine."""
    nodes = tuple(node for layer in e.layers for node in layer.onnx_nodes)
    return dataclasses.replace(e, layers=(dataclasses.replace(e.layers[0], onnx_nodes=nodes, **OPAQUE),), summary=None)


def twice(section: str, damage: Callable[[Any], Any], first: bool) -> Change:
    """The last entry of a section a second time, damaged, before or after the good one."""

    def apply(comparison: Comparison) -> Comparison:
        entries = getattr(comparison, section)
        bad = damage(entries[-1])
        return dataclasses.replace(comparison, **{section: (bad, *entries) if first else (*entries, bad)})

    return apply


def everywhere(**values: Any) -> Change:
    return lambda c: dataclasses.replace(c, evals=tuple(dataclasses.replace(r, **values) for r in c.evals))


def bad_engine(e: EngineReport) -> EngineReport:
    first = dataclasses.replace(e.layers[0], compute=Precision.FP32, verdict=LayerVerdict.FALLBACK)
    return dataclasses.replace(e, layers=(first, *e.layers[1:]))


def recount(**counts: int) -> Callable[[EngineReport], EngineReport]:
    """Another summary over the same layers."""

    def make(e: EngineReport) -> EngineReport:
        assert e.summary is not None
        return dataclasses.replace(e, summary=dataclasses.replace(e.summary, **counts))

    return make


SERIES = report("engine-int8", [1.0] * 5000).per_sample["top1"]
CLASSES = {str(c): 0.97 for c in range(10)}
LOST = {"metrics": {"top1": 0.5}, "per_sample": {}, "per_class": {}, "sample_classes": ()}
NUMBERS = {"per_sample": {}, "per_class": {}, "sample_classes": ()}

# name, change, judged against a baseline, kind of the finding that must be there
GAPS: list[tuple[str, Change, bool, str]] = [
    ("every layer opaque", every_layer("int8", **OPAQUE), False, "fallback"),
    ("every layer opaque, known in the baseline", every_layer("int8", **OPAQUE), True, "lost-precision"),
    ("one layer opaque, known in the baseline", relayer("int8", 1, **OPAQUE), True, "lost-precision"),
    ("one foreign node swallowed the engine", on_engine("fp16", swallowed), False, "fallback"),
    ("as asked, and nothing says in what", every_layer("int8", compute=None), True, "lost-precision"),
    ("no node of the baseline is left", every_layer("int8", onnx_nodes=("renamed",)), True, "lost-precision"),
    ("the engine ran, its layers are not known", on_engine("int8", lambda e: None), False, "missing"),
    ("an engine named twice, the bad one first", twice("engines", bad_engine, True), True, "missing"),
    ("an engine named twice, the bad one last", twice("engines", bad_engine, False), True, "missing"),
    ("a stage named twice", twice("evals", lambda r: dataclasses.replace(r, **LOST), True), True, "missing"),
    ("a latency named twice", twice("latency", lambda x: x, True), True, "missing"),
    ("the metric of the parent is gone", stage("engine-int8", lambda r: dataclasses.replace(r, metrics={"loss": 0.1}, per_sample={}, per_class={})), False, "missing"),
    ("too few values by sample", fields("engine-int8", per_sample={"top1": SERIES[:-1]}), False, "samples"),
    ("too many values by sample", fields("engine-int8", per_sample={"top1": (*SERIES, 1.0)}), False, "samples"),
    ("a value by sample is not finite", fields("engine-int8", per_sample={"top1": (None, *SERIES[1:])}), False, "non-finite"),
    ("values by sample, as the baseline has them, are gone", fields("engine-int8", per_sample={}), True, "samples"),
    ("values by class, as the baseline has them, are gone", fields("engine-int8", per_class={}), True, "worst-class"),
    ("a class is NaN", fields("engine-int8", per_class={"top1": {**CLASSES, "3": float("nan")}}), False, "worst-class"),
    ("no class of the parent is known", fields("weights", per_class={"top1": dict.fromkeys(CLASSES)}), False, "worst-class"),
    ("too few classes of samples", fields("engine-int8", sample_classes=tuple(map(str, labels()))[:-1]), False, "samples"),
    ("classes of samples that the parent contradicts", fields("engine-int8", sample_classes=("0",) * 5000), False, "samples"),
    ("a stage that is its own parent", fields("engine-int8", reference="engine-int8", **LOST), False, "missing"),
    ("a stage of another tool, with nothing to judge it by", stage("engine-int8", lambda r: dataclasses.replace(r, stage="jetson", **LOST)), False, "missing"),
    ("nobody says which way is better", both(lambda c: dataclasses.replace(c, directions={}), everywhere(metrics={"loss": 0.1}, **NUMBERS)), False, "missing"),
    ("p50 outside its own repeats", slower(1.0, p50_ms=10.0), True, "latency"),
    ("a listing of layers that is cut", on_engine("int8", lambda e: dataclasses.replace(e, complete=False)), False, "missing"),
    ("a summary that knows of more layers than are listed", on_engine("int8", lambda e: dataclasses.replace(e, layers=e.layers[1:])), False, "missing"),
    ("a summary that knows of a fallback that is not listed", on_engine("int8", recount(as_asked=5, fallback=1)), False, "missing"),
    ("a summary that knows of an unknown layer that is not listed", on_engine("int8", recount(as_asked=5, unknown=1)), False, "missing"),
    ("called as asked, and computes in more", relayer("int8", 1, compute=Precision.FP32), False, "missing"),
    ("another precision was asked than in the baseline", on_engine("int8", lambda e: dataclasses.replace(e, asked=Precision.FP32)), True, "missing"),
    ("called bit-equal, with an error", fields("onnx-fp32", exact=True), False, "missing"),
    ("called bit-equal, and decides otherwise", fields("onnx-fp32", exact=True, max_abs_error=0.0, relative_error=0.0, agreement=0.9), False, "missing"),
    ("p50 not known any more", slower(1.0, p50_ms=None, repeats=()), True, "missing"),
]  # fmt: skip


def judged(change: Change, tmp_path: Path, *, against: bool, limits: dict[str, Any] | None = None) -> GateResult:
    accept(healthy(), tmp_path / "b.json", reason="first", author="A")
    made = load_comparison(write(change(healthy()), tmp_path / "run") / "comparison.json")
    rules = parse_limits({"resamples": 500, **(limits or {})}, "gate.yaml")
    return judge(made, rules, load(tmp_path / "b.json") if against else None)


@pytest.mark.parametrize("case", GAPS, ids=lambda case: case[0].replace(" ", "_"))
def test_a_gap_is_incomplete(case: tuple[str, Change, bool, str], tmp_path: Path) -> None:
    _, change, against, kind = case
    assert judged(lambda c: c, tmp_path, against=against).exit_code == 0
    result = judged(change, tmp_path, against=against)
    incomplete = [c.kind for c in result.findings if c.status.value == "incomplete"]
    assert kind in incomplete, [c.message for c in result.findings]
    assert result.exit_code in (1, 4)


def test_some_opaque_layers_are_said_and_pass(tmp_path: Path) -> None:
    result = judged(relayer("int8", 1, **OPAQUE), tmp_path, against=False)
    (note,) = [c for c in result.findings if c.kind == "possible-fallback"]
    assert result.exit_code == 0
    assert "1 of 6 layers of engine int8 are opaque" in note.message


def test_whoever_limits_opaque_layers_may_allow_them(tmp_path: Path) -> None:
    for allowed, code in ((6, 0), (5, 1)):
        limits = {"layers": [{"engine": "int8", "max_fallback": 0, "max_possible": allowed}]}
        assert judged(every_layer("int8", **OPAQUE), tmp_path, against=False, limits=limits).exit_code == code


def test_unknown_layers_are_not_excused_by_a_limit_of_opaque_ones(tmp_path: Path) -> None:
    unknown = every_layer("int8", compute=None, verdict=LayerVerdict.UNKNOWN)
    limits = {"layers": [{"engine": "int8", "max_fallback": 0, "max_possible": 6}]}
    assert judged(unknown, tmp_path, against=False, limits=limits).exit_code == 4


@pytest.mark.parametrize(
    "rule", [{"layers": [{"engine": "int8", "max_lost": 0}]}, {"size": [{"engine": "int8", "max_increase": 5}]}]
)
def test_a_limit_on_a_named_engine_needs_it_in_the_baseline(rule: dict[str, Any], tmp_path: Path) -> None:
    before = dataclasses.replace(healthy(), engines=healthy().engines[:1])
    accept(before, tmp_path / "b.json", reason="first", author="A")
    baseline = load(tmp_path / "b.json")
    assert judge(healthy(), parse_limits({"resamples": 500, **rule}, ""), baseline).exit_code == 4
    assert judge(healthy(), parse_limits({"resamples": 500}, ""), baseline).exit_code == 0


def test_a_model_that_lost_some_nodes_is_compared_on_the_rest(tmp_path: Path) -> None:
    cut = on_engine("int8", lambda e: summarised(dataclasses.replace(e, layers=e.layers[1:])))
    result = judged(cut, tmp_path, against=True)
    (note,) = [c for c in result.findings if c.kind == "lost-precision"]
    assert "2 of 12 nodes" in note.message  # the convolution and its ReLU
    assert result.exit_code == 0


def test_a_class_whose_samples_say_something_else_is_judged_by_its_number(tmp_path: Path) -> None:
    result = judged(fields("engine-int8", per_class={"top1": {**CLASSES, "3": 0.2}}), tmp_path, against=False)
    assert result.exit_code == 1
    assert "class 3" in result.findings[0].message


def test_numbers_of_a_few_samples_do_not_pass(tmp_path: Path) -> None:
    # 3 / n: 100 samples cannot exclude a loss of 3 %, 5000 can exclude 0.06 %; the margin is 0.6 %.
    for samples, code in ((1, 5), (100, 5), (5000, 0)):
        few = both(everywhere(samples=samples, **NUMBERS), everywhere(metrics={"top1": 0.97}))
        made = lambda c, few=few, n=samples: dataclasses.replace(  # noqa: E731
            few(c), provenance=dataclasses.replace(c.provenance, samples=n)
        )
        result = judged(made, tmp_path, against=False)
        # What each stage lacks to be judged by class stays a note: the number is judged.
        assert result.exit_code == code, [c.message for c in result.findings]


def test_an_agreement_is_with_the_stage_that_it_was_measured_against(tmp_path: Path) -> None:
    limits = {"accuracy": [{"stage": "engine-int8", "parent": "onnx-int8", "agreement": 0.5}]}
    assert judged(lambda c: c, tmp_path, against=False, limits=limits).exit_code == 4


def test_copies_are_counted_where_the_summary_forgets_them(tmp_path: Path) -> None:
    def lie(e: EngineReport) -> EngineReport:
        more = (copy_layer("a"), copy_layer("b"))
        return dataclasses.replace(e, layers=(*e.layers, *more))  # the summary still says one

    assert (
        judged(on_engine("fp16", lie), tmp_path, against=False, limits={"layers": [{"max_copies": 2}]}).exit_code == 1
    )


def test_a_waiver_of_one_unknown_layer_leaves_the_others(tmp_path: Path) -> None:
    unknown = every_layer("int8", compute=None, verdict=LayerVerdict.UNKNOWN)
    waiver = {"node": "stem", "kind": "unknown-layers", "reason": "seen in the builder's log"}
    result = judged(unknown, tmp_path, against=False, limits={"waivers": [waiver]})
    status = [c.status.value for c in result.findings if c.kind == "unknown-layers"]
    assert sorted(status) == ["incomplete"] * 5 + ["waived"]
    assert result.exit_code == 4


def test_a_baseline_that_cannot_be_compared_cannot_be_waived(tmp_path: Path) -> None:
    limits = {"waivers": [{"kind": "baseline", "reason": "do not bother me with it"}]}
    other = lambda c: dataclasses.replace(  # noqa: E731
        c, provenance=dataclasses.replace(c.provenance, data_sha256="b" * 64)
    )
    assert judged(other, tmp_path, against=True, limits=limits).exit_code == 3


def test_an_empty_list_of_accuracy_limits_does_not_pass_what_was_measured(tmp_path: Path) -> None:
    assert judged(lambda c: c, tmp_path, against=True, limits={"accuracy": []}).exit_code == 4


def test_a_self_referencing_stage_alone_has_no_parent_to_lose_from(tmp_path: Path) -> None:
    def alone(c: Comparison) -> Comparison:
        only = dataclasses.replace(c.evals[1], reference="onnx-fp32")
        return dataclasses.replace(c, evals=(only,), latency=())

    accept(alone(healthy()), tmp_path / "b.json", reason="first", author="A")
    result = judge(alone(healthy()), parse_limits({"resamples": 500}, ""), load(tmp_path / "b.json"))
    assert result.exit_code == 0, [c.message for c in result.findings]


@pytest.mark.parametrize(
    "raw",
    [
        {"layers": [{"max_fallback": True}]},
        {"layers": [{"min_share": True}]},
        {"accuracy": [{"floor": False}]},
        {"size": [{"max_bytes": True}]},
        {"accuracy": [{"stage": "", "retention": 99}]},
        {"waivers": [{"stage": "**", "reason": "everything is fine here"}]},
        {"waivers": [{"stage": ["x", "*"], "node": "?*", "kind": "[!z]*", "metric": "*", "reason": "all fine here"}]},
    ],
)
def test_limits_that_only_look_like_limits_are_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        parse_limits(raw, "gate.yaml")


def test_a_run_that_names_a_stage_or_an_engine_twice_is_no_baseline(tmp_path: Path) -> None:
    good = healthy()
    for bad in (
        dataclasses.replace(good, evals=(*good.evals, good.evals[0])),
        dataclasses.replace(good, engines=(*good.engines, engine("fp16", Precision.FP16))),
    ):
        with pytest.raises(ArtifactError, match="twice"):
            accept(bad, tmp_path / "b.json", reason="first", author="A")
    assert not (tmp_path / "b.json").exists()


def test_a_comparison_that_nests_without_end_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "comparison.json").write_text("[" * 100_000)
    with pytest.raises(ArtifactError, match="not valid JSON"):
        load_comparison(tmp_path / "comparison.json")

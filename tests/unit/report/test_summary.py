"""What the table at the end of a run says, and above all what it must never say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from deploychain.artifact import Artifact
from deploychain.outcome import StageRow
from deploychain.precision import Precision
from deploychain.records import (
    COMPARISON_SCHEMA,
    Comparison,
    EngineReport,
    EvalReport,
    LayerKind,
    LayerRecord,
    LayerSummary,
    LayerVerdict,
    Provenance,
)
from deploychain.report.summary import print_comparison
from deploychain.workspace import Record

REFERENCE = EvalReport(
    "train-fp32", True, how="torch eager FP32, CPU", reference="train-fp32", metrics={"top1": 0.9}, agreement=1.0,
    exact=True, max_abs_error=0.0, non_finite=0,
)  # fmt: skip


def stage(name: str, kinds: dict[str, str], status: str = "ran", seconds: float | None = 1.25) -> StageRow:
    artifacts = tuple(Artifact(kind, Path("/run") / file, "0" * 64, 1, 0) for kind, file in kinds.items())
    record = Record(name, "key", {}, artifacts, {}, (), seconds or 0.0)
    return StageRow(name, status, "", seconds, record)  # type: ignore[arg-type]


def layer(name: str, verdict: LayerVerdict, reason: str = "", kind: LayerKind = LayerKind.COMPUTE) -> LayerRecord:
    return LayerRecord(
        name, "correlation", kind, asked=Precision.INT8, compute=Precision.FP32, verdict=verdict, reason=reason,
        onnx_nodes=(f"/{name}/Conv",), module=name,
    )  # fmt: skip


def printed(capsys: pytest.CaptureFixture[str], comparison: Comparison | None, stages: list[StageRow]) -> str:
    print_comparison(comparison, stages, Path("/run"))
    text = capsys.readouterr().out
    assert all(len(line) <= 100 for line in text.splitlines()), text
    return text


def row_of(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if name in line)


def comparison(evals: tuple[EvalReport, ...], engines: tuple[EngineReport, ...] = ()) -> Comparison:
    return Comparison(COMPARISON_SCHEMA, Provenance(samples=360), evals, engines, directions={"top1": "higher"})


def test_each_line_holds_its_own_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    half = EvalReport(
        "onnx-fp16", True, how="emulated", reference="train-fp32", metrics={"top1": 0.8875}, agreement=0.975,
        max_abs_error=0.0047, snr_db=64.71, exact=False, non_finite=0,
    )  # fmt: skip
    text = printed(
        capsys,
        comparison((REFERENCE, half)),
        [stage("train", {"checkpoint": "checkpoint.pt"}), stage("plan", {"onnx-fp16": "m.fp16.onnx"}, "cached")],
    )
    train, plan = row_of(text, "checkpoint.pt").split(), row_of(text, "m.fp16.onnx").split()
    assert train == ["train", "1.2", "s", "checkpoint.pt", "0.9000", "reference"]
    assert plan == ["plan", "(1.2", "s)", "m.fp16.onnx", "0.8875", "97.5", "%", "0.0047", "64.7"]
    assert "(Time): cached" in text
    assert "errors against train-fp32, 360 test samples" in text
    assert "onnx-fp16: emulated" in text
    assert text.splitlines()[-1] == "run folder: /run"


def test_not_finite_is_told_in_place_of_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    broken = EvalReport("onnx-fp16", True, reference="train-fp32", metrics={"top1": None}, non_finite=12, exact=False)
    text = printed(capsys, comparison((REFERENCE, broken)), [stage("plan", {"onnx-fp16": "m.onnx"})])
    assert row_of(text, "m.onnx").split()[-4:] == ["unknown", "12", "not", "finite"]


def test_engine_that_did_not_run_has_no_numbers_but_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    evals = (REFERENCE, EvalReport("engine-fp16", False, reason="cudaError 35: no driver"))
    engine = EngineReport("fp16", Precision.FP16, built=True, problems=("the builder printed no layer listing",))
    text = printed(capsys, comparison(evals, (engine,)), [stage("build", {"engine-fp16": "fp16.engine"})])
    assert row_of(text, "fp16.engine").split()[3:] == ["fp16.engine", "not", "run", "unknown", "?"]
    assert "engine-fp16 not run: cudaError 35: no driver" in text
    # Without judged layers there is no count that could be read as a pass.
    assert "engine fp16: nothing is known of the precision of its layers" in text
    assert "the builder printed no layer listing" in text


def test_engine_that_was_not_built_is_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    evals = (REFERENCE, EvalReport("engine-int8", False, reason="the engine was not built: nms_0"))
    engine = EngineReport("int8", Precision.INT8, built=False, reason="nms_0")
    text = printed(capsys, comparison(evals, (engine,)), [stage("build", {"engine-fp16": "fp16.engine"})])
    assert row_of(text, "int8: not built").split()[-2:] == ["not", "run"]
    assert "engine-int8 not run: the engine was not built: nms_0" in text


def test_layer_problems_are_named_worst_first_and_none_is_swallowed(capsys: pytest.CaptureFixture[str]) -> None:
    layers = (
        layer("good", LayerVerdict.AS_ASKED),
        layer("edge", LayerVerdict.EXPECTED, "the graph keeps it fp32"),
        layer("slow", LayerVerdict.FALLBACK, "its weights are Float"),
        layer("guard", LayerVerdict.DEMOTED, "its weights are Half"),
        layer("blob", LayerVerdict.UNKNOWN, "only its borders are known", LayerKind.OPAQUE),
        layer("copy", LayerVerdict.UNKNOWN, "a copy", LayerKind.COPY),
        *(layer(f"more{i}", LayerVerdict.POSSIBLE) for i in range(9)),
    )
    summary = LayerSummary(15, 14, as_asked=1, fallback=1, demoted=1, possible=9, expected=1, unknown=1, copies=1)
    engine = EngineReport("int8", Precision.INT8, built=True, layers=layers, summary=summary)
    text = printed(capsys, comparison((REFERENCE,), (engine,)), [stage("build", {"engine-int8": "int8.engine"})])
    assert row_of(text, "int8.engine").split()[-5:] == ["1", "of", "14", "2", "+10?"]
    flat = " ".join(text.split())
    assert (
        "engine int8: 1 of 14 layers in the precision asked for, 1 lower than asked, 1 higher than asked, 10 unknown"
        in flat
    )
    assert "1 as expected: the graph keeps it fp32" in text
    order = [text.index(word) for word in ("demoted", "fallback", "only its borders", "possible")]
    assert order == sorted(order)
    assert "/slow/Conv" in text and "int8 -> fp32" in text
    assert "a copy" not in text  # copies are counted, not judged
    assert "and 4 more layers in comparison.json" in text  # 12 problems, 8 listed


def test_a_chain_that_ended_early_still_has_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, None, [stage("train", {"checkpoint": "checkpoint.pt"}), StageRow("weights", "not-run", "x")])
    assert "checkpoint.pt" in text and "(not-run: x)" in text and text.splitlines()[-1] == "run folder: /run"


def test_agreement_that_tells_nothing_is_unknown_and_the_reason_is_told_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    note = "agreement is unknown: by 'y' the reference decides class 1 for every sample"
    both = [
        EvalReport(
            name, True, how="how", reference="train-fp32", metrics={"top1": 0.5}, max_abs_error=0.0, exact=True,
            per_output={"y": {"agreement": None}}, notes=(note,),
        )
        for name in ("train-fp32", "weights")
    ]  # fmt: skip
    stages = [stage("train", {"checkpoint": "c.pt"}), stage("weights", {"weights": "w.safetensors"})]
    text = printed(capsys, comparison(tuple(both)), stages)
    assert "unknown" in row_of(text, "w.safetensors") and "%" not in row_of(text, "w.safetensors")
    assert text.count("agreement is unknown") == 1 and f"train-fp32, weights: {note}" in " ".join(text.split())
    regression = [replace(report, per_output={}, notes=()) for report in both]
    assert "unknown" not in row_of(printed(capsys, comparison(tuple(regression)), stages), "w.safetensors")

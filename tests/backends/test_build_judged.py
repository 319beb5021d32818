"""Real builds, judged: the faults that no log line of the library mentions."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("tensorrt_rtx", reason="TensorRT for RTX is not installed")
pytest.importorskip("onnx", reason="the models are made with onnx")

import build_models

from deploychain.artifact import Artifact
from deploychain.console import NoProgress
from deploychain.engine.built import engine_reports
from deploychain.errors import CapabilityError, StageError
from deploychain.job import Job, StageResult
from deploychain.records import EngineReport, LayerVerdict
from deploychain.settings import BuildSettings
from deploychain.stages.build import STAGE

pytestmark = pytest.mark.rtx


def run(tmp_path: Path, models: dict[str, Path], **settings: object) -> tuple[StageResult, Path, list[str]]:
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    out.mkdir()
    scratch.mkdir()
    notes: list[str] = []
    job = Job(
        stage="build",
        settings=BuildSettings(backend="tensorrt_rtx", **settings),  # type: ignore[arg-type]
        task=None,
        seed=0,
        inputs={kind: Artifact.of(kind, path) for kind, path in models.items()},
        out=out,
        scratch=scratch,
        progress=lambda _label: contextlib.nullcontext(NoProgress()),
        note=notes.append,
    )
    return STAGE.run(job), out, notes


def reports(out: Path) -> dict[str, EngineReport]:
    evidence = json.loads((out / "engine-evidence.json").read_text())
    return {report.name: report for report in engine_reports(evidence)}


def verdicts(report: EngineReport, node: str) -> set[LayerVerdict]:
    return {x.verdict for x in report.layers if node in x.onnx_nodes and x.layer_type == "correlation"}


def test_three_engines_and_their_verdicts(tmp_path: Path) -> None:
    models = {
        "onnx-fp32": build_models.conv(tmp_path / "fp32.onnx"),
        "onnx-fp16": build_models.lone_guard(tmp_path / "fp16.onnx"),
        "onnx-int8": build_models.quantised(tmp_path / "int8.onnx"),
    }
    result, out, _ = run(tmp_path, models)
    assert set(result.artifacts) == {"engine-fp32", "engine-fp16", "engine-int8", "engine-evidence"}
    assert all((out / name).stat().st_size for name in result.artifacts.values())
    judged = reports(out)
    assert verdicts(judged["fp32"], "/conv/Conv") == {LayerVerdict.AS_ASKED}
    assert verdicts(judged["int8"], "/conv1/Conv") == {LayerVerdict.AS_ASKED}
    # The FP32 convolution that stands alone between two casts is built in FP16, without a warning.
    assert verdicts(judged["fp16"], "/guard/Conv") == {LayerVerdict.DEMOTED}
    assert verdicts(judged["fp16"], "/a/Conv") == {LayerVerdict.AS_ASKED}


def test_scale_of_shape_1_falls_back_and_the_cause_is_named(tmp_path: Path) -> None:
    models = {
        "onnx-fp32": build_models.conv(tmp_path / "fp32.onnx"),
        "onnx-int8": build_models.quantised(tmp_path / "int8.onnx", scale_shape=(1,)),
    }
    _, out, notes = run(tmp_path, models)
    report = reports(out)["int8"]
    assert report.summary is not None and report.summary.fallback == 3
    for i in range(3):
        assert verdicts(report, f"/conv{i}/Conv") == {LayerVerdict.FALLBACK}
    assert any("shape [1]" in p and "/conv0/aq/QuantizeLinear" in p for p in report.problems)
    assert any("fp16 not built" in note and "no onnx-fp16" in note for note in notes)


def test_the_other_engines_still_build(tmp_path: Path) -> None:
    models = {"onnx-fp32": build_models.nms(tmp_path / "a.onnx"), "onnx-fp16": build_models.conv(tmp_path / "b.onnx")}
    result, out, notes = run(tmp_path, models, engines=("fp32", "fp16"))
    assert set(result.artifacts) == {"engine-fp16", "engine-evidence"}
    assert not (out / "fp32.engine").exists()
    report = reports(out)["fp32"]
    assert not report.built and "/post/nms" in report.reason and "NonMaxSuppression" in report.reason
    assert any("/post/nms" in note for note in notes)


def test_sizes_of_the_exported_example_reach_the_profile(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    check = {"sizes": {"batch": 3, "height": 40}}
    report.write_text(json.dumps({"models": {"fp32": {"checks": [check]}}}))
    model = build_models.relu(tmp_path / "m.onnx", ["batch", 3, "height", 32])
    _, out, notes = run(tmp_path, {"onnx-fp32": model, "export-report": report}, engines=("fp32",), opt_batch=4)
    row = json.loads((out / "engine-evidence.json").read_text())["engines"][0]
    assert row["profiles"] == {"x": {"min": [1, 3, 20, 32], "opt": [4, 3, 40, 32], "max": [8, 3, 80, 32]}}
    assert any("height" in note for note in notes)


def test_no_engine_fails_the_stage(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="/post/nms") as caught:
        run(tmp_path, {"onnx-fp32": build_models.nms(tmp_path / "a.onnx")}, engines=("fp32",))
    assert "operator" in caught.value.remedy


@pytest.mark.parametrize(
    ("capability", "make", "error", "words"),
    [
        ("9.0", build_models.gemm, CapabilityError, ("9.0", "8.9", "H100")),
        ("7.5", build_models.gemm, StageError, ("/fc/Gemm", "FP32 matrix product", "fp16")),
    ],
)
def test_targets_that_do_not_work_are_explained(
    tmp_path: Path, capability: str, make: Callable[[Path], Path], error: type[Exception], words: tuple[str, ...]
) -> None:
    with pytest.raises(error) as caught:
        run(tmp_path, {"onnx-fp32": make(tmp_path / "a.onnx")}, engines=("fp32",), compute_capability=capability)
    assert all(word in str(caught.value) for word in words)

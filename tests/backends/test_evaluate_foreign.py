"""A chain that starts from an ONNX file and an npz: no task, no torch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="needs the [chain] extra")
pytest.importorskip("onnxruntime", reason="needs the [chain] extra")
import onnx
from evaluate_jobs import read_rows, run_stage
from onnx import parser

from deploychain.backends import ort
from deploychain.environment import gpu_name
from deploychain.errors import ArtifactError, StageError
from deploychain.records import load_comparison
from deploychain.settings import CompareSettings, EvaluateSettings
from deploychain.stages import compare, evaluate

pytestmark = pytest.mark.chain

HEAD = '<ir_version: 8, opset_import: ["" : 17]> '
# scores = 1000 * x - 1000 * x / 2, in steps: with x = 100 the first product is 100000, beyond FP16.
FP32 = HEAD + "g (float[N,3] x) => (float[N,3] scores) <float big = {1000}> { a = Mul(x, big)  scores = Sub(a, x) }"
FP16 = (
    HEAD
    + """g (float[N,3] x) => (float[N,3] scores) <float big = {1000}>
    { h = Cast<to=10>(x)  b = Cast<to=10>(big)  a = Mul(h, b)  s = Sub(a, h)  scores = Cast<to=1>(s) }"""
)
X = np.array([[1, 2, 3], [3, 2, 1], [1, 100, 2], [4, 1, 1]], np.float32)
TARGETS = np.array([2, 0, 1, 2])  # the model decides 2, 0, 1, 0


def save(path: Path, text: str) -> Path:
    model = parser.parse_model(text)
    for index, node in enumerate(model.graph.node):
        node.name = f"/{node.op_type}_{index}"
    onnx.save(model, path)
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    np.savez(tmp_path / "test.npz", x=X, targets=TARGETS)
    return {
        "onnx-fp32": save(tmp_path / "model.onnx", FP32),
        "onnx-fp16": save(tmp_path / "model.fp16.onnx", FP16),
        "data": tmp_path / "test.npz",
    }


def test_metrics_and_overflow_at_the_right_place(files: dict[str, Path], tmp_path: Path) -> None:
    made, _, summary = run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(batch_size=3), files)
    rows, content = read_rows(made)
    assert list(rows) == ["onnx-fp32", "onnx-fp16"]
    reference, half = rows["onnx-fp32"], rows["onnx-fp16"]
    assert content["reference"] == "onnx-fp32" == half["reference"]
    assert reference["metrics"] == {"top1": 0.75} and reference["per_sample"] == {"top1": [1, 1, 1, 0]}
    assert reference["per_class"] == {"top1": {"0": 1.0, "1": 1.0, "2": 0.5}}
    assert reference["sample_classes"] == ["2", "0", "1", "2"]
    assert reference["exact"] is True and reference["max_abs_error"] == 0.0 and reference["agreement"] == 1.0
    # 100 * 1000 overflows; every other value is exact in FP16 or rounds to a neighbour.
    assert half["non_finite"] == 1 and half["exact"] is False
    assert half["max_abs_error"] is None and half["snr_db"] is None
    assert half["worst_samples"][0] == 2
    assert "FP16 rounding emulated" in half["how"] and "emulated" not in reference["how"]
    assert content["directions"] == {"top1": "higher"}
    assert content["flags"]["fp16"] == "rounding emulated"
    assert content["samples"] == 4 == summary["samples"]


def test_error_statistics_of_a_known_difference(files: dict[str, Path], tmp_path: Path) -> None:
    # The same model with a constant 0.5 added to one column: e = 0.5 in 4 of 12 values.
    shifted = FP32.replace("<float big = {1000}> {", "<float big = {1000}, float[3] d = {0.5, 0, 0}> {").replace(
        "scores = Sub(a, x)", "s = Sub(a, x)  scores = Add(s, d)"
    )
    files["onnx-int8"] = save(tmp_path / "model.int8.onnx", shifted)
    rows, _ = read_rows(run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files)[0])
    row = rows["onnx-int8"]
    reference = X.astype(np.float64) * 999
    assert row["max_abs_error"] == 0.5 and row["mean_abs_error"] == pytest.approx(2 / 12)
    assert row["relative_error"] == pytest.approx(1 / np.linalg.norm(reference), rel=1e-6)
    assert row["snr_db"] == pytest.approx(20 * np.log10(np.linalg.norm(reference)), rel=1e-6)
    assert row["agreement"] == 1.0 and row["per_output"]["scores"]["max_abs_error"] == 0.5


def test_limit_of_samples_and_identity_of_the_data(files: dict[str, Path], tmp_path: Path) -> None:
    def digest(name: str, settings: EvaluateSettings) -> tuple[str, dict]:
        rows, content = read_rows(run_stage(evaluate.STAGE, tmp_path / name, settings, files)[0])
        return content["data_sha256"], rows

    whole, _ = digest("a", EvaluateSettings())
    again, _ = digest("b", EvaluateSettings(batch_size=1))
    first, rows = digest("c", EvaluateSettings(samples=2))
    assert whole == again != first
    assert rows["onnx-fp32"]["samples"] == 2 and rows["onnx-fp32"]["metrics"] == {"top1": 1.0}
    assert rows["onnx-fp16"]["non_finite"] == 0  # the sample that overflows is the third
    changed = X.copy()
    changed[3, 2] = np.nextafter(np.float32(1), np.float32(2))
    np.savez(files["data"], x=changed, targets=TARGETS)
    assert digest("d", EvaluateSettings())[0] != whole


def test_without_targets_there_are_errors_and_no_metrics(files: dict[str, Path], tmp_path: Path) -> None:
    np.savez(files["data"], x=X[:2])
    rows, content = read_rows(run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files)[0])
    assert rows["onnx-fp16"]["metrics"] == {} and rows["onnx-fp16"]["max_abs_error"] is not None
    assert content["directions"] == {}


def test_targets_that_no_output_can_be_scored_with(tmp_path: Path) -> None:
    model = save(tmp_path / "m.onnx", HEAD + "g (float[N,3] x) => (int64[N,1] k) { k = ArgMax<axis=1>(x) }")
    np.savez(tmp_path / "t.npz", x=X, targets=TARGETS)
    inputs = {"onnx-fp32": model, "data": tmp_path / "t.npz", "onnx-int8": model}
    rows, _ = read_rows(run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), inputs)[0])
    row = rows["onnx-int8"]
    assert row["metrics"] == {} and "no output of shape (samples, classes)" in row["notes"][0]
    assert row["exact"] is True and row["per_output"] == {"k": {"equal": 1.0}}
    assert row["agreement"] is None and row["max_abs_error"] is None  # nothing invented for indices


def test_a_damaged_model_is_a_row_and_the_table_stands(files: dict[str, Path], tmp_path: Path) -> None:
    files["onnx-fp16"].write_bytes(files["onnx-fp16"].read_bytes()[:-30])
    made, notes, summary = run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files)
    rows, _ = read_rows(made)
    assert rows["onnx-fp32"]["ran"] is True
    row = rows["onnx-fp16"]
    assert row["ran"] is False and row["reason"] and row["metrics"] == {} and row["non_finite"] is None
    assert any(n.startswith("onnx-fp16 not run: ") for n in notes) and "onnx-fp16" in summary["not_run"]


def test_the_reference_must_run(files: dict[str, Path], tmp_path: Path) -> None:
    files["onnx-fp32"].write_bytes(b"no model")
    with pytest.raises(ArtifactError, match=r"model\.onnx"):
        run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"image": X}, "'x' are not in the data, which has 'image'"),
        ({"x": X, "targets": TARGETS[:2]}, r"targets are int64 of shape \[2\] for 4 samples"),
        ({"x": X, "targets": TARGETS.astype(np.float32)}, "targets are float32"),
        ({"targets": TARGETS}, "holds no inputs"),
        ({"x": X[:0]}, "'x' has no samples"),
        ({"x": np.array([{"a": 1}], dtype=object)}, "not a readable npz"),
        ({"x": X.astype(np.uint8)}, r"test\.npz: array 'x' holds uint8, the model's input 'x' takes float32"),
        ({"x": X.astype(np.int64)}, "holds int64.*takes float32.*preprocess it as in training"),
    ],
)
def test_wrong_data_is_told(files: dict[str, Path], tmp_path: Path, arrays: dict, message: str) -> None:
    np.savez(files["data"], **arrays)
    with pytest.raises(StageError, match=message):
        run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files)


def test_integers_are_no_floats_for_a_session_either() -> None:
    """A task's data take this way: each uint8 is exact in FP32, and pixels are seldom what a model was trained on."""
    model = parser.parse_model(FP32)
    with pytest.raises(StageError, match=r"'x' is tensor.float., the data are uint8.*astype.numpy.float32"):
        ort.run_model(model, {"x": X.astype(np.uint8)})
    assert np.array_equal(ort.run_model(model, {"x": X.astype(np.float64)})["scores"], X * 999)


QDQ = (
    HEAD
    + """g (float[N,3] x) => (float[N,3] scores) <float s = {1}, int8 z = {0}, float big = {1000}>
    { q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  a = Mul(d, big)  scores = Sub(a, d) }"""
)


def test_rows_with_nan_are_named_for_every_model(files: dict[str, Path], tmp_path: Path) -> None:
    bad = X.copy()
    bad[1, 0], bad[3, 2] = np.nan, np.inf
    np.savez(files["data"], x=bad, targets=TARGETS)
    files["onnx-int8"] = save(tmp_path / "model.int8.onnx", QDQ)
    made, notes, _ = run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files)
    rows, _ = read_rows(made)
    assert "the test data hold NaN or infinity: samples 1 and 3" in notes
    assert rows["onnx-fp32"]["notes"] == [
        "the reference itself has NaN or infinity in the outputs of samples 1 and 3, whose inputs hold some too"
    ]
    # 100 * 1000 overflows in FP16 (sample 2), beside what the data bring.
    assert rows["onnx-fp16"]["notes"] == ["NaN or infinity in the outputs of samples 1, 2 and 3"]
    # Quantised, NaN and infinity are numbers: nothing in the outputs shows that the input was none.
    assert rows["onnx-int8"]["non_finite"] == 0 and rows["onnx-int8"]["max_abs_error"] is None
    (note,) = rows["onnx-int8"]["notes"]
    assert note.startswith("finite outputs where the reference has NaN or infinity: samples 1 and 3 ")


def test_agreement_with_a_model_that_always_decides_alike_is_unknown(files: dict[str, Path], tmp_path: Path) -> None:
    np.savez(files["data"], x=np.array([[1, 2, 9], [0, 1, 2], [-3, 0, 7]], np.float32), targets=TARGETS[:3])
    rows, _ = read_rows(run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files)[0])
    for row in rows.values():
        assert row["agreement"] is None and row["max_abs_error"] is not None
        assert "agreement is unknown: by 'scores' the reference decides class 2 for every sample" in row["notes"]


@pytest.mark.rtx
@pytest.mark.skipif(gpu_name() is not None, reason="needs a machine without an NVIDIA GPU")
def test_engines_that_cannot_run_say_why_in_the_librarys_words(files: dict[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("tensorrt_rtx", reason="needs the [rtx] extra")
    from deploychain.settings import BuildSettings
    from deploychain.stages import build

    files["onnx-int8"] = save(tmp_path / "nonzero.onnx", HEAD + "g (float[N,3] x) => (int64[R,M] k) { k = NonZero(x) }")
    built, _, _ = run_stage(build.STAGE, tmp_path, BuildSettings(), files)
    made, _, _ = run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files | built)
    rows, _ = read_rows(made)
    for name in ("engine-fp32", "engine-fp16"):
        assert rows[name]["ran"] is False and "cudaError 35" in rows[name]["reason"]
        assert rows[name]["metrics"] == {} and rows[name]["max_abs_error"] is None
    assert rows["engine-int8"]["ran"] is False
    assert rows["engine-int8"]["reason"].startswith("the engine was not built: ")
    assert rows["onnx-fp32"]["ran"] is True

    compared, _, _ = run_stage(compare.STAGE, tmp_path, CompareSettings(worst_samples=1), made | built)
    comparison = load_comparison(compared["comparison"])
    assert {e.stage for e in comparison.evals} == set(rows)
    assert {e.name: e.built for e in comparison.engines} == {"fp32": True, "fp16": True, "int8": False}
    int8 = next(e for e in comparison.engines if e.name == "int8")
    assert int8.summary is None and "NonZero" in int8.reason
    half = next(e for e in comparison.evals if e.stage == "onnx-fp16")
    assert half.worst_samples == (2,) and half.non_finite == 1
    provenance = comparison.provenance
    assert provenance.tensorrt is not None and provenance.tensorrt.startswith("tensorrt_rtx 1.")
    assert provenance.pipeline == "made-by-hand" and provenance.samples == 4
    assert "8.9" in provenance.flags["engine-fp16"] and provenance.flags["engine-int8"] == "not built"
    assert {"onnxruntime", "onnx", "numpy", "python", "deploychain"} <= set(provenance.versions)


def test_compare_without_engines_says_so(files: dict[str, Path], tmp_path: Path) -> None:
    made, _, _ = run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files)
    compared, _, summary = run_stage(compare.STAGE, tmp_path, CompareSettings(), made)
    comparison = load_comparison(compared["comparison"])
    assert comparison.engines == () and comparison.provenance.tensorrt is None
    assert comparison.notes == ("no engine was built in this chain: nothing is known of built layers",)
    assert summary["layers"] == {}


def test_compare_refuses_another_schema_and_damage(files: dict[str, Path], tmp_path: Path) -> None:
    made, _, _ = run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files)
    content = json.loads(made["eval-reports"].read_text())
    for broken, message in (
        (content | {"schema": "deploychain.eval-reports/9"}, "eval-reports/9"),
        (content | {"evals": [{"stage": "qat", "ran": "perhaps"}]}, r"evals\.0\.ran"),
    ):
        made["eval-reports"].write_text(json.dumps(broken))
        with pytest.raises(ArtifactError, match=message):
            run_stage(compare.STAGE, tmp_path, CompareSettings(), made)

"""The whole chain on digits, and its table checked against values worked out another way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the [chain] extra")
pytest.importorskip("onnx", reason="needs the [chain] extra")
pytest.importorskip("onnxruntime", reason="needs the [chain] extra")
pytest.importorskip("modelopt", reason="needs the [chain] extra")
pytest.importorskip("safetensors", reason="needs the [chain] extra")
pytest.importorskip("sklearn", reason="needs the [examples] extra")
pytest.importorskip("tensorrt_rtx", reason="needs the [rtx] extra")
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import load_file
from sklearn.datasets import load_digits

from deploychain import chain
from deploychain.config import load_pipeline
from deploychain.environment import gpu_name
from deploychain.outcome import RunResult
from deploychain.records import Comparison, EvalReport, load_comparison

pytestmark = [pytest.mark.chain, pytest.mark.rtx, pytest.mark.slow]

PIPELINES = Path(chain.__file__).parent.parent / "pipelines"


class Ran:
    """A finished run: files by kind, the comparison, its rows."""

    def __init__(self, result: RunResult) -> None:
        assert result.ok
        self.result = result
        self.files = {a.kind: a.path for row in result.stages if row.record for a in row.record.artifacts}
        self.notes = {row.name: row.record.notes for row in result.stages if row.record}
        self.comparison: Comparison = load_comparison(self.files["comparison"])
        self.rows: Mapping[str, EvalReport] = {e.stage: e for e in self.comparison.evals}

    def json(self, kind: str) -> Any:
        return json.loads(self.files[kind].read_text())


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    sets = ["train.epochs=5", "train.mixed_epochs=1", "qat.epochs=1"]
    pipeline = load_pipeline(PIPELINES / "digits" / "pipeline.yaml", sets)
    return Ran(chain.run(pipeline, run_dir=tmp_path_factory.mktemp("digits")))


def held_out() -> tuple[np.ndarray, np.ndarray]:
    """The test set of the task (every fifth image), made without its code."""
    data = load_digits()
    return (data.images[::5, None] / 8 - 1).astype(np.float32), data.target[::5]


def run_plainly(path: Path, x: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {session.get_inputs()[0].name: x})[0])


def test_table_has_every_row_and_each_says_how_or_why(digits: Ran) -> None:
    wanted = ["train-fp32", "train-amp", "weights", "qat", "onnx-fp32", "onnx-fp16", "onnx-int8"]
    wanted += ["engine-fp32", "engine-fp16", "engine-int8"]
    assert list(digits.rows) == wanted
    for row in digits.rows.values():
        assert row.how if row.ran else row.reason
        assert row.ran or not row.metrics
    assert [row["stage"] for row in digits.result.table] == wanted
    for name in ("onnx-fp16", "onnx-int8"):
        assert ("emulated" in digits.rows[name].how) == (gpu_name() is None)
    if gpu_name() is None:
        for name in wanted[-3:]:
            assert "cudaError 35" in digits.rows[name].reason


def test_weights_are_those_of_the_checkpoint_bit_by_bit(digits: Ran) -> None:
    state = torch.load(digits.files["checkpoint"], weights_only=True)["model"]
    published = load_file(digits.files["weights"])
    assert set(published) == set(state)
    assert all(torch.equal(published[n], state[n]) and published[n].dtype == state[n].dtype for n in state)
    row = digits.rows["weights"]
    assert row.exact is True and row.max_abs_error == 0.0 and row.snr_db is None


def test_fp32_export_is_the_model(digits: Ran) -> None:
    row = digits.rows["onnx-fp32"]
    assert row.max_abs_error is not None and row.max_abs_error < 1e-4
    assert row.relative_error is not None and row.relative_error < 1e-5
    x, y = held_out()
    assert row.metrics["top1"] == pytest.approx((run_plainly(digits.files["onnx-fp32"], x).argmax(1) == y).mean())


def test_errors_of_int8_are_those_of_a_plain_comparison(digits: Ran) -> None:
    x, y = held_out()
    out = run_plainly(digits.files["onnx-qat"], x).astype(np.float64)
    ref = run_plainly(digits.files["onnx-fp32"], x).astype(np.float64)
    row = digits.rows["onnx-int8"]
    error = out - ref
    # The INT8 model computes FP16 outside its quantised regions: close to the Q/DQ export, not equal to it.
    assert row.snr_db == pytest.approx(10 * np.log10((ref**2).sum() / (error**2).sum()), abs=0.5)
    assert row.max_abs_error == pytest.approx(np.abs(error).max(), rel=0.15)
    assert row.agreement == pytest.approx((out.argmax(1) == ref.argmax(1)).mean(), abs=3 / 360)
    assert digits.rows["qat"].metrics["top1"] == pytest.approx((out.argmax(1) == y).mean(), abs=1 / 360)


def test_fp16_costs_what_fp16_costs(digits: Ran) -> None:
    row = digits.rows["onnx-fp16"]
    # 11 significant bits: one rounding gives about 70 dB; a handful of layers stays above 50 and below 85.
    assert row.exact is False and row.snr_db is not None and 50 < row.snr_db < 85
    assert row.non_finite == 0 and row.agreement is not None and row.agreement > 0.98


def test_scales_of_the_export_are_those_of_the_quantisers(digits: Ran) -> None:
    model = onnx.load(digits.files["onnx-qat"])
    weights = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant":
            weights[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    exported = sorted(
        float(v) for n in model.graph.node if n.op_type == "QuantizeLinear" for v in np.ravel(weights[n.input[1]])
    )
    table = sorted(float(v) for row in digits.json("quantizers")["quantizers"] for v in np.ravel(row["scale"]))
    assert np.allclose(exported, table, rtol=1e-6, atol=0) and len(exported) == len(table)


def test_every_row_is_consistent_in_itself(digits: Ran) -> None:
    for row in digits.rows.values():
        if not row.ran:
            continue
        hits = [h for h in row.per_sample["top1"] if h is not None]
        assert len(hits) == row.samples == 360
        assert row.metrics["top1"] == pytest.approx(sum(hits) / 360)
        for name, value in row.per_class["top1"].items():
            of_class = [h for h, c in zip(hits, row.sample_classes, strict=True) if c == name]
            assert value == pytest.approx(sum(of_class) / len(of_class))
        if row.max_abs_error is not None and row.mean_abs_error is not None:
            assert row.mean_abs_error <= row.max_abs_error
        if row.snr_db is not None and row.relative_error is not None:
            assert row.snr_db == pytest.approx(-20 * np.log10(row.relative_error), abs=1e-6)


def test_layer_counts_add_up_and_leave_nothing_out(digits: Ran) -> None:
    assert [e.name for e in digits.comparison.engines] == ["fp32", "fp16", "int8"]
    for engine in digits.comparison.engines:
        assert engine.built and engine.summary is not None
        found = engine.summary
        parts = (found.as_asked, found.fallback, found.demoted, found.possible, found.expected, found.unknown)
        assert sum(parts) == found.total > 0
        assert found.layers == len(engine.layers)
        assert digits.result.layers[engine.name]["total"] == found.total
    convs = [x for x in digits.comparison.engines[2].layers if any(n.endswith("/Conv") for n in x.onnx_nodes)]
    assert any(str(x.compute) == "int8" for x in convs)


def test_provenance_says_what_was_measured(digits: Ran) -> None:
    found = digits.comparison.provenance
    assert found.pipeline == "digits" and found.samples == 360
    assert found.tensorrt is not None and found.flags["trained"] == digits.json("train-log")["precision"]
    # The metadata of PyPI's wheel lack the local part that torch itself tells: 2.13.0, 2.13.0+cu130.
    assert found.data_sha256 is not None
    assert found.versions["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    for name in ("checkpoint", "weights", "onnx-fp16"):
        stage = {"checkpoint": "train-amp"}.get(name, name)
        assert digits.rows[stage].artefact_sha256 in {
            a.sha256 for row in digits.result.stages if row.record for a in row.record.artifacts if a.kind == name
        }


def overflowing(folder: Path) -> Path:
    """A pipeline that starts from an ONNX file whose /energy nodes leave the range of FP16 and come back."""
    rng = np.random.default_rng(0)
    weights = {
        "w1": rng.standard_normal((8, 3, 3, 3)) / 5,
        "w2": rng.standard_normal((5, 8)) / 3,
        "big": np.float64(60000),
        "small": np.float64(1 / 60000),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="/stem/conv/Conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], name="/stem/act/Relu"),
        helper.make_node("Mul", ["b", "big"], ["c"], name="/energy/Mul"),
        helper.make_node("Mul", ["c", "small"], ["d"], name="/energy/Mul_1"),
        helper.make_node("GlobalAveragePool", ["d"], ["e"], name="/pool/GlobalAveragePool"),
        helper.make_node("Flatten", ["e"], ["f"], name="/Flatten"),
        helper.make_node("Gemm", ["f", "w2"], ["scores"], name="/head/Gemm", transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "overflowing",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 12, 12])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 5])],
        [numpy_helper.from_array(np.asarray(w, np.float32), n) for n, w in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    np.savez(folder / "test.npz", x=rng.standard_normal((40, 3, 12, 12)).astype(np.float32))
    file = folder / "pipeline.yaml"
    file.write_text(
        "name: overflowing\nstart: {onnx: model.onnx}\ndata: test.npz\n"
        "stages: {plan: {precisions: [fp16]}, build: {engines: [fp16]}, evaluate: , compare: }\n"
    )
    return file


def planned(ran: Ran, node: str) -> Mapping[str, Any]:
    nodes: list[dict[str, Any]] = ran.json("precision-plan")["models"]["fp16"]["nodes"]
    return next(n for n in nodes if n["name"] == node)


def test_overflow_is_kept_out_by_the_plan_and_told_at_its_node(tmp_path: Path) -> None:
    ran = Ran(chain.run(load_pipeline(overflowing(tmp_path)), run_dir=tmp_path / "run"))
    assert planned(ran, "/energy/Mul")["precision"] == "fp32"
    assert any("/energy/Mul:" in note and "65504" in note for note in ran.notes["plan"])
    assert planned(ran, "/stem/conv/Conv")["precision"] == "fp16"
    row = ran.rows["onnx-fp16"]
    assert row.non_finite == 0 and row.relative_error is not None and 0 < row.relative_error < 0.01


def test_overflow_that_the_user_insists_on_is_measured(tmp_path: Path) -> None:
    pipeline = load_pipeline(overflowing(tmp_path), ['plan.pin={"/energy/*": fp16}'])
    ran = Ran(chain.run(pipeline, run_dir=tmp_path / "run"))
    assert planned(ran, "/energy/Mul")["precision"] == "fp16"
    assert any("/energy/Mul:" in note and "65504" in note for note in ran.notes["plan"])
    row = ran.rows["onnx-fp16"]
    assert row.non_finite is not None and row.non_finite > 0 and row.max_abs_error is None
    # Plain onnxruntime on the CPU would have hidden it.
    with np.load(tmp_path / "test.npz") as arrays:
        assert np.isfinite(run_plainly(ran.files["onnx-fp16"], arrays["x"])).all()

"""The Q/DQ contract on planted breaches: each found by node, none in sound models, the mechanical ones repaired."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="the checker reads ONNX models")
pytest.importorskip("onnxruntime", reason="repaired models are run")

import numpy as np
import onnx
import onnxruntime
import qdq_models as q
from onnx import numpy_helper

from deploychain.backends.onnx_qdq import check_qdq, fix_qdq

pytestmark = pytest.mark.chain


@pytest.mark.parametrize(
    "model, kind, severity, node",
    [
        (q.chain(scale=[0.05]), "scale-shape", "error", "a/QuantizeLinear"),
        (q.chain(scale=[0.05] * 16, axis=1), "activation-per-channel", "error", "a/QuantizeLinear"),
        (q.chain(scale=0.0), "scale-value", "error", "a/QuantizeLinear"),
        (q.chain(scale=float("nan")), "scale-value", "error", "a/QuantizeLinear"),
        (q.chain(zero=3), "zero-point", "error", "a/QuantizeLinear"),
        (q.chain(dtype=np.uint8), "uint8", "warning", "a/QuantizeLinear"),
        (q.without_zero_point(), "uint8", "warning", "a/QuantizeLinear"),
        (q.chain(dequantise=0.1), "pair-scales", "warning", "a/DequantizeLinear"),
        (q.one_sided(activation=True), "one-sided", "error", "conv1"),
        (q.one_sided(activation=False), "one-sided", "error", "conv1"),
        (q.linear(weight=False), "one-sided", "error", "gemm"),
        (q.between("Relu"), "one-sided", "error", "conv1"),
        (q.wrong_axis(), "channel-axis", "error", "w1q/DequantizeLinear"),
        (q.transposed(0), "channel-axis", "error", "w1q/DequantizeLinear"),
        (q.transposed(), "conv-transpose", "note", "deconv"),
        (q.quantised_bias(), "bias", "error", "b1q/DequantizeLinear"),
        (q.residual(skip=False), "skip", "warning", "add"),
        (q.concat((0.05, 0.11)), "concat", "warning", "concat"),
        (q.float_only(), "not-quantisable", "warning", "softmax"),
        (q.dangling(), "dangling", "warning", "a/QuantizeLinear"),
        (q.half_scales(17), "half-scale", "error", "a/QuantizeLinear"),
        (q.weights_as_inputs(), "weight-as-input", "note", "w1q/QuantizeLinear"),
        (q.clipped_constant(), "clipped-constant", "error", "w1q/DequantizeLinear"),
        (q.dynamic_scale(), "scale-not-constant", "error", "a/QuantizeLinear"),
        (q.integer_format(), "integer-format", "error", "conv1"),
    ],
)
def test_a_planted_breach_is_found_by_its_node(model: onnx.ModelProto, kind: str, severity: str, node: str) -> None:
    found = check_qdq(model)
    first = next(f for f in found if f.kind == kind)
    assert (first.node, first.severity) == (node, severity)
    assert first.detail and first.remedy
    # Nothing else is blamed, apart from what follows from the same fault.
    companions = {"scale-value": {"pair-scales"}, "channel-axis": {"conv-transpose"}, "conv-transpose": set()}
    assert {f.kind for f in found} <= {kind} | companions.get(kind, set())


@pytest.mark.parametrize(
    "model",
    [
        q.chain(),
        q.residual(skip=True),
        q.concat((0.05, 0.05)),
        q.concat((0.05, 0.05), after=False),
        q.concat(None),
        q.linear(),
        q.linear(op="MatMul"),
        q.linear(activation=False, weight=False),
        q.stored_int8(),
        q.half_scales(19),
        q.between("MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
        q.between("Transpose", perm=[0, 1, 3, 2]),
        q.weight_of_one_channel(),
    ],
)
def test_sound_models_have_no_finding(model: onnx.ModelProto) -> None:
    assert check_qdq(model) == []


def test_the_module_comes_from_the_map_or_the_name() -> None:
    model = q.one_sided(activation=True)
    assert check_qdq(model, {"conv1": "stem.0"})[0].module == "stem.0"
    node = next(n for n in model.graph.node if n.name == "conv1")
    node.name = "/layer1/layer1.0/conv1/Conv"
    assert check_qdq(model)[0].module == "layer1.0.conv1"


def run(model: onnx.ModelProto) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    x = np.random.default_rng(0).normal(0, 1, (2, q.CHANNELS, 16, 16)).astype(np.float32)
    result: np.ndarray = session.run(None, {"x": x})[0]
    return result


@pytest.mark.parametrize(
    "model, kinds",
    [
        (q.chain(scale=[0.05]), ["scale-shape", "scale-shape"]),
        (q.quantised_bias(), ["bias"]),
        (q.weights_as_inputs(), ["weight-as-input"] * 3),
        (q.clipped_constant(), ["clipped-constant"]),
    ],
)
def test_mechanical_repairs_keep_the_function(model: onnx.ModelProto, kinds: list[str]) -> None:
    before = model.SerializeToString()
    fixed, repaired = fix_qdq(model)
    assert [f.kind for f in repaired] == kinds and all(f.fixable for f in repaired)
    assert check_qdq(fixed) == []
    assert model.SerializeToString() == before  # a new model; the given one is untouched
    onnx.checker.check_model(fixed, full_check=True)
    assert np.allclose(run(fixed), run(model), rtol=1e-4, atol=1e-5)  # onnxruntime may choose another kernel


def test_what_is_not_mechanical_is_left_and_not_claimed() -> None:
    fixed, repaired = fix_qdq(q.one_sided(activation=True))
    assert repaired == []
    assert [f.kind for f in check_qdq(fixed)] == ["one-sided"]


def test_a_repaired_scale_is_0d_and_has_its_value() -> None:
    fixed, _ = fix_qdq(q.chain(scale=[0.05]))
    weights = {t.name: numpy_helper.to_array(t) for t in fixed.graph.initializer}
    node = next(n for n in fixed.graph.node if n.name == "a/QuantizeLinear")
    assert weights[node.input[1]].shape == () and weights[node.input[1]] == np.float32(0.05)
    assert weights[node.input[2]].shape == () and weights[node.input[2]].dtype == np.int8


def test_a_model_of_onnxruntimes_own_quantiser(tmp_path: Path) -> None:
    """Its defaults break the contract in the ways that TensorRT refuses; with the right options only skips remain."""
    quantization = pytest.importorskip("onnxruntime.quantization", reason="onnxruntime's quantiser")
    g = q.Graph()
    g.plain("bias", (q.CHANNELS,))
    y = g.add("Relu", [g.conv("x", g.plain("w1", q.SHAPE), "conv1", "bias")], "relu")
    onnx.save(g.model(g.conv(y, g.plain("w2", q.SHAPE), "conv2")), tmp_path / "fp32.onnx")

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            rng = np.random.default_rng(0)
            self.left = [{"x": rng.normal(0, 1, (4, q.CHANNELS, 16, 16)).astype(np.float32)} for _ in range(2)]

        def get_next(self) -> dict[str, np.ndarray] | None:
            return self.left.pop() if self.left else None

    def kinds(**options: object) -> set[str]:
        quantization.quantize_static(
            str(tmp_path / "fp32.onnx"), str(tmp_path / "q.onnx"), Reader(), per_channel=True, **options
        )
        return {f.kind for f in check_qdq(onnx.load(tmp_path / "q.onnx"))}

    assert {"zero-point", "bias"} <= kinds()
    symmetric = {"ActivationSymmetric": True, "WeightSymmetric": True, "QuantizeBias": False}
    int8 = quantization.QuantType.QInt8
    left = kinds(activation_type=int8, weight_type=int8, extra_options=symmetric)
    assert not left & {"zero-point", "bias", "uint8", "scale-shape", "one-sided", "channel-axis"}

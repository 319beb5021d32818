"""onnxruntime's asymmetric quantiser removes the Relu in front of it: the FP32 side of a drop must still have it."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="needs the frameworks of the [chain] extra")

from plan_models import Graph

from deploychain.backends import onnx_graph
from deploychain.backends.onnx_emulate import Emulator

pytestmark = pytest.mark.chain


@pytest.mark.parametrize(("kind", "zero", "relu"), [(np.uint8, 0, True), (np.int8, -128, True), (np.int8, 0, False)])
def test_a_skipped_quantiser_keeps_the_range_that_stood_for_a_relu(kind: type, zero: int, relu: bool) -> None:
    g = Graph()
    scale = 0.05
    hidden = g.linear("x", 8, 8, name="/a/MatMul")
    pair = (g.weight(scale), g.weight(np.array(zero, kind)))
    coded = g.op("QuantizeLinear", hidden, *pair, name="/a/Q")
    wide = g.op("DequantizeLinear", coded, *pair, name="/a/DQ")
    codes = g.random.integers(-127, 128, (8, 4)).astype(np.int8)
    weight = g.op("DequantizeLinear", g.weight(codes), g.weight(0.01), g.weight(np.array(0, np.int8)), name="/w/DQ")
    model = onnx_graph.prepare(g.model({"x": ["n", 8]}, g.op("MatMul", wide, weight, name="/b/MatMul"), ["n", 4]))
    data = np.random.default_rng(2).standard_normal((6, 8)).astype(np.float32)
    first = onnx_graph.numpy_helper.to_array(model.graph.initializer[0])
    assert first.shape == (8, 8)
    emulator = Emulator(model, onnx_graph.node_infos(model), {"x": data})
    got = next(iter(emulator.outputs(frozenset(), frozenset(["/b/MatMul"])).values()))
    passed = np.clip(data @ first, 0.0, 255 * scale) if relu else data @ first
    wanted = passed @ (codes * 0.01)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
    assert (data @ first).min() < -0.5

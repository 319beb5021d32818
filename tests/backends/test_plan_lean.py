"""Models with large weights take another way through shape inference and into onnxruntime: the results are the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime", reason="needs the frameworks of the [chain] extra")

from onnx import TensorProto, helper
from plan_models import Graph

from deploychain.backends import onnx_graph
from deploychain.errors import StageError

pytestmark = pytest.mark.chain


def test_weights_that_stay_outside_change_no_fact_and_no_output(monkeypatch: pytest.MonkeyPatch) -> None:
    g = Graph()
    hidden = g.op("Relu", g.linear("x", 32, 64, name="/a/MatMul"), name="/a/Relu")
    shape = g.op("Concat", g.op("Shape", hidden, end=1), g.weight(np.array([4, 16])), axis=0)
    y = g.op("Reshape", g.linear(hidden, 64, 64, name="/b/MatMul"), shape)
    model = g.model({"x": ["n", 32]}, y, ["n", "a", "b"])
    data = {"x": np.random.default_rng(1).standard_normal((5, 32)).astype(np.float32)}
    usual = onnx_graph.prepare(model)
    monkeypatch.setattr(onnx_graph, "_LEAN_LIMIT", 1)
    lean = onnx_graph.prepare(model)
    assert onnx_graph.tensor_types(lean) == onnx_graph.tensor_types(usual)
    assert [str(v) for v in lean.graph.output] == [str(v) for v in usual.graph.output]
    assert lean.graph.initializer == usual.graph.initializer
    got = onnx_graph.open_model(lean).run(None, data)[0]
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    first, second = (w for w in weights.values() if w.ndim == 2)
    wanted = (np.maximum(data["x"].astype(float) @ first, 0) @ second).reshape(5, 4, 16)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("operator", "domain"), [("ConvInteger", ""), ("QLinearAdd", "com.microsoft")])
def test_integer_operators_are_refused_before_anything_is_run(operator: str, domain: str) -> None:
    node = helper.make_node(operator, ["x", "w"], ["y"], name="/a/quant", domain=domain)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "g", [value("x", TensorProto.UINT8, ["n", 4])], [value("y", TensorProto.INT32, ["n", 4])]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(StageError, match=f"{operator} is the integer-operator form") as caught:
        onnx_graph.require_fp32(model, str(Path("m.onnx")))
    assert caught.value.where == "/a/quant"

"""Graph helpers and the emulator, against independent ways to the same answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

pytest.importorskip("onnxruntime", reason="needs the frameworks of the [chain] extra")
pytest.importorskip("modelopt.onnx", reason="needs ModelOpt")

from plan_models import Graph, healthy

from deploychain.backends import autocast, onnx_graph, onnx_range
from deploychain.backends.onnx_emulate import Emulator, skip_quantisers
from deploychain.backends.ort import emulate_fp16, run_model
from deploychain.errors import ArtifactError, StageError

pytestmark = pytest.mark.chain


def test_emulated_nodes_equal_the_emulation_of_the_converted_file(tmp_path: Path) -> None:
    """Two independent roads: rounding put into the FP32 graph, and the converted file rounded by its own types."""
    pytest.importorskip("torch", reason="the networks are exported from torch")
    for path, data in healthy(tmp_path).values():
        model = onnx_graph.prepare(onnx_graph.load(path))
        infos = onnx_graph.node_infos(model)
        some = {i.name for n, i in enumerate(infos) if n % 3 and not i.not_lowerable and i.is_float}
        precisions = {i.name: ("fp16" if i.name in some else "fp32") for i in infos}
        converted, _ = autocast.convert(model, precisions)
        here = Emulator(model, infos, data).outputs(some)
        there = run_model(emulate_fp16(converted), data, 32)
        for name, value in here.items():
            np.testing.assert_array_equal(value, there[name], err_msg=f"{path.stem} {name}")


def test_ranges_are_those_of_the_tensors_themselves() -> None:
    g = Graph()
    h = g.linear("x", 8, 8, name="/a/MatMul")
    made = onnx_graph.prepare(g.model({"x": ["n", 8]}, g.op("Exp", h, name="/b/Exp"), ["n", 8]))
    x = np.random.default_rng(0).standard_normal((100, 8)).astype(np.float32)
    report = onnx_range.measure(made, {"x": x}, max_batch=7)
    hidden = x @ numpy_helper.to_array(made.graph.initializer[0])
    assert report.samples == 100
    assert report.groups == 1
    assert report.ranges["/a/MatMul_out"].abs_max == pytest.approx(np.abs(hidden).max(), rel=1e-5)
    assert report.ranges["/b/Exp_out"].maximum == pytest.approx(np.exp(hidden).max(), rel=1e-5)
    assert report.ranges["/b/Exp_out"].count == 800


def test_tensors_over_the_memory_limit_are_read_in_groups_with_the_same_result() -> None:
    g = Graph()
    h = "x"
    for _ in range(6):
        h = g.op("Relu", g.linear(h, 64, 64))
    made = onnx_graph.prepare(g.model({"x": ["n", 64]}, h, ["n", 64]))
    x = {"x": np.random.default_rng(0).standard_normal((5, 64)).astype(np.float32)}
    whole = onnx_range.measure(made, x)
    cut = onnx_range.measure(made, x, memory_limit=3 * 64 * 4)
    assert cut.groups == 4
    assert cut.batch_size == 1
    assert {n: r.abs_max for n, r in cut.ranges.items()} == pytest.approx(
        {n: r.abs_max for n, r in whole.ranges.items()}
    )


def test_unordered_nodes_are_sorted_and_a_cycle_is_told() -> None:
    a = helper.make_node("Relu", ["x"], ["a"], name="a")
    b = helper.make_node("Relu", ["a"], ["b"], name="b")
    graph = helper.make_graph([b, a], "g", [], [])
    onnx_graph.sort_topologically(graph)
    assert [n.name for n in graph.node] == ["a", "b"]
    loop = helper.make_graph(
        [helper.make_node("Relu", ["b"], ["a"], name="a"), helper.make_node("Relu", ["a"], ["b"], name="b")],
        "g",
        [],
        [],
    )
    with pytest.raises(StageError, match="cycle"):
        onnx_graph.sort_topologically(loop)


def _cast_chain(first: int, *casts: int) -> onnx.ModelProto:
    nodes = [helper.make_node("Cast", [f"t{i}"], [f"t{i + 1}"], name=f"c{i}", to=kind) for i, kind in enumerate(casts)]
    last = f"t{len(casts)}"
    nodes.append(helper.make_node("Relu", [last], ["y"], name="relu"))
    graph = helper.make_graph(
        nodes,
        "casts",
        [helper.make_tensor_value_info("t0", first, ["n"])],
        [helper.make_tensor_value_info("y", casts[-1], ["n"])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_casts_that_undo_each_other_go_and_casts_that_round_stay() -> None:
    half, full = TensorProto.FLOAT16, TensorProto.FLOAT
    widening = _cast_chain(half, full, half)
    assert onnx_graph.remove_cast_pairs(widening) == 2
    assert [n.op_type for n in widening.graph.node] == ["Relu"]
    rounding = _cast_chain(full, half, full)
    assert onnx_graph.remove_cast_pairs(rounding) == 0
    same = _cast_chain(full, full)
    assert onnx_graph.remove_cast_pairs(same) == 1


def test_shared_scales_are_unshared_so_that_none_becomes_fp16() -> None:
    """The TorchScript exporter shares equal initializers through Identity; a quantiser's scale must stay FP32."""
    model = _quantised_chain(shared=True)
    prepared = onnx_graph.prepare(model)
    assert "Identity" not in {n.op_type for n in prepared.graph.node}
    precisions = {n.name: ("int8" if "Linear" in n.op_type else "fp16") for n in prepared.graph.node}
    converted, _ = autocast.convert(prepared, precisions)
    onnx.checker.check_model(converted, full_check=True)
    scales = {n.input[1] for n in converted.graph.node if n.op_type in ("QuantizeLinear", "DequantizeLinear")}
    types = onnx_graph.tensor_types(converted)
    assert {types[s] for s in scales} == {TensorProto.FLOAT}
    assert converted.opset_import[0].version == 17


def _quantised_chain(shared: bool = False) -> onnx.ModelProto:
    g = Graph()
    scale = g.weight(np.float32(0.02), "scale")
    zero = g.weight(np.array(0, np.int8), "zero")
    h = "x"
    for index in range(2):
        name = f"/fc{index}"
        s = g.op("Identity", scale, name=f"{name}/Identity") if shared else scale
        w = g.weight(g.random.standard_normal((16, 16)) * 0.2, f"weight{index}")
        q = g.op("DequantizeLinear", g.op("QuantizeLinear", h, s, zero, name=f"{name}/q"), s, zero, name=f"{name}/dq")
        k = g.op("DequantizeLinear", g.op("QuantizeLinear", w, s, zero, name=f"{name}/wq"), s, zero, name=f"{name}/wdq")
        h = g.op("MatMul", q, k, name=f"{name}/MatMul")
    return g.model({"x": ["n", 16]}, h, ["n", 16])


def test_a_node_without_its_quantisers_computes_what_the_plain_graph_does() -> None:
    model = onnx_graph.prepare(_quantised_chain())
    x = {"x": np.random.default_rng(3).standard_normal((8, 16)).astype(np.float32)}
    weights = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    skip_quantisers(model, {"/fc0/MatMul", "/fc1/MatMul"})
    assert {n.op_type for n in model.graph.node} == {"MatMul"}
    expected = x["x"] @ weights["weight0"] @ weights["weight1"]
    np.testing.assert_allclose(run_model(model, x)["/fc1/MatMul_out"], expected, rtol=1e-4, atol=1e-5)


def test_what_a_plan_cannot_start_from_is_told(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="does not exist"):
        onnx_graph.load(tmp_path / "none.onnx")
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(b"\x00" * 40)
    with pytest.raises(ArtifactError):
        onnx_graph.load(damaged)
    half = Graph()
    half.weights.append(numpy_helper.from_array(np.ones((4, 4), np.float16), "w"))
    half.nodes.append(helper.make_node("Cast", ["w"], ["wide"], name="cast", to=TensorProto.FLOAT))
    model = half.model({"x": ["n", 4]}, half.op("MatMul", "x", "wide", name="mm"), ["n", 4])
    with pytest.raises(StageError, match="'w' is float16"):
        onnx_graph.require_fp32(model, "half.onnx")
    made = Graph()
    model = made.model({"x": ["n", 4]}, made.linear("x", 4, 4), ["n", 4])
    model.opset_import[0].version = 11
    with pytest.raises(StageError, match="opset 11"):
        onnx_graph.require_fp32(model, "old.onnx")


def test_model_over_the_protobuf_limit_runs_and_is_saved_beside_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the limit lowered, so that the road of a model over 2 GB is taken by a small one."""
    g = Graph()
    h = g.op("Tanh", g.linear("x", 64, 64, name="/a/MatMul"), name="/a/Tanh")
    model = g.model({"x": ["n", 64]}, g.linear(h, 64, 64, name="/b/MatMul"), ["n", 64])
    x = {"x": np.random.default_rng(0).standard_normal((6, 64)).astype(np.float32)}
    expected = run_model(model, x)
    small = onnx_range.measure(onnx_graph.prepare(model), x)
    monkeypatch.setattr(onnx_graph, "_PROTO_LIMIT", 1000)
    prepared = onnx_graph.prepare(model)
    assert onnx_graph.is_large(prepared)
    large = onnx_range.measure(prepared, x)
    assert {n: r.abs_max for n, r in large.ranges.items()} == {n: r.abs_max for n, r in small.ranges.items()}
    outputs = Emulator(prepared, onnx_graph.node_infos(prepared), x).outputs(set())
    np.testing.assert_array_equal(outputs["/b/MatMul_out"], expected["/b/MatMul_out"])
    onnx_graph.save(prepared, tmp_path / "large.onnx")
    assert (tmp_path / "large.onnx").stat().st_size < 5000
    assert (tmp_path / "large.onnx.data").stat().st_size >= 2 * 64 * 64 * 4
    np.testing.assert_array_equal(run_model(tmp_path / "large.onnx", x)["/b/MatMul_out"], expected["/b/MatMul_out"])
    assert onnx_graph.load(tmp_path / "large.onnx").graph.initializer[0].raw_data

"""ONNX rules on graphs with planted faults."""

# ruff: noqa: E402  (imports come after importorskip)
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="reads ONNX files")
pytest.importorskip("onnxruntime", reason="opens ONNX files")

from onnx import TensorProto, helper, numpy_helper

from deploychain.backends.amp_onnx_rules import audit_model_proto, audit_onnx, audit_ranges

pytestmark = pytest.mark.chain
HALF, FLOAT = TensorProto.FLOAT16, TensorProto.FLOAT


def model(
    nodes: list[Any],
    inputs: dict[str, Any],
    output: str,
    constants: dict[str, Any] | None = None,
    dtype: int = FLOAT,
    opset: int = 17,
) -> Any:
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info(n, dtype, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(output, dtype, [None] * len(next(iter(inputs.values()))))],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in (constants or {}).items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def rules(proto: Any, **settings: Any) -> list[tuple[str, str]]:
    return [(f.rule, f.severity.value) for f in audit_model_proto(proto, "m.onnx", **settings).findings]


def norm_chain(dtype: int, eps: float = 1e-5) -> Any:
    kind = np.float16 if dtype == HALF else np.float32
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[-1]),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("Pow", ["d", "two"], ["q"]),
        helper.make_node("ReduceMean", ["q"], ["v"], axes=[-1]),
        helper.make_node("Add", ["v", "eps"], ["ve"], name="add_eps"),
        helper.make_node("Sqrt", ["ve"], ["s"]),
        helper.make_node("Div", ["d", "s"], ["y"], name="norm"),
    ]
    return model(nodes, {"x": [1, 8]}, "y", {"two": kind(2), "eps": kind(eps)}, dtype)


def test_r21_chain_and_r09_eps() -> None:
    assert rules(norm_chain(HALF)) == [("R21", "warning")]
    assert rules(norm_chain(FLOAT)) == [("R21", "note")]
    assert rules(norm_chain(HALF, 1e-12)) == [("R21", "warning"), ("R09", "warning")]
    assert rules(norm_chain(FLOAT, 1e-12)) == [("R21", "note"), ("R09", "note")]


def test_layer_normalization_is_no_finding() -> None:
    node = helper.make_node("LayerNormalization", ["x", "w"], ["y"], epsilon=1e-12)
    assert rules(model([node], {"x": [1, 8]}, "y", {"w": np.ones(8, np.float32)})) == []


def test_r21_cast_to_double_in_a_half_graph() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["d"], to=TensorProto.DOUBLE),
        helper.make_node("Cast", ["d"], ["y"], to=HALF),
    ]
    assert rules(model(nodes, {"x": [1, 8]}, "y", dtype=HALF)) == [("R21", "warning")]


def test_r19_opset_checker_and_session(tmp_path: Path) -> None:
    good = model([helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 8]}, "y", opset=18)
    assert rules(good, requested_opset=18) == []
    assert rules(good, requested_opset=17) == [("R19", "error")]
    invalid = model([helper.make_node("Split", ["x"], ["y", "z"], num_outputs=2, axis=1)], {"x": [1, 8]}, "y", opset=17)
    assert rules(invalid) == [("R19", "error")]
    path = tmp_path / "bad.onnx"
    path.write_bytes(b"\x00\x01not onnx")
    assert audit_onnx(path).problems or audit_onnx(path).findings


def test_r20_fixed_batch() -> None:
    node = [helper.make_node("Relu", ["x"], ["y"])]
    fixed, free = model(node, {"x": [1, 8]}, "y"), model(node, {"x": ["batch", 8]}, "y")
    assert rules(fixed, dynamic_batch=True) == [("R20", "error")]
    assert rules(free, dynamic_batch=True) == []
    assert rules(fixed) == []


@pytest.mark.parametrize(("width", "found"), [(1920, True), (64, False)])
def test_r23_half_grid(width: int, found: bool) -> None:
    node = [helper.make_node("GridSample", ["x", "g"], ["y"])]
    made = model(node, {"x": [1, 3, 4, width], "g": [1, 4, 4, 2]}, "y", dtype=HALF)
    assert (("R23", "warning") in rules(made)) is found
    assert rules(model(node, {"x": [1, 3, 4, width], "g": [1, 4, 4, 2]}, "y")) == []


def test_r22_constants() -> None:
    node = [helper.make_node("Add", ["x", "c"], ["y"])]
    assert rules(model(node, {"x": [1, 8]}, "y", {"c": np.float32(-1e9)})) == [("R22", "note")]
    with np.errstate(over="ignore"):
        assert rules(model(node, {"x": [1, 8]}, "y", {"c": np.float16(-1e9)}, HALF)) == [("R22", "warning")]
    assert rules(model(node, {"x": [1, 8]}, "y", {"c": np.float32(-1e4)})) == []


def test_r22_ranges_on_calibration_data(tmp_path: Path) -> None:
    nodes = [helper.make_node("Mul", ["x", "k"], ["big"]), helper.make_node("Mul", ["big", "back"], ["y"])]
    path = tmp_path / "m.onnx"
    onnx.save(model(nodes, {"x": ["n", 4]}, "y", {"k": np.float32(1e5), "back": np.float32(1e-5)}), str(path))
    found = audit_ranges(path, {"x": np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)}).findings
    assert [(f.rule, f.severity.value, f.message.split(":")[0]) for f in found] == [("R22", "error", "big")]
    near = audit_ranges(path, {"x": np.full((8, 4), 0.2, np.float32)}).findings
    assert [(f.rule, f.severity.value) for f in near] == [("R22", "warning")]
    small = audit_ranges(path, {"x": np.full((8, 4), 1e-9, np.float32)}).findings
    assert {f.message.split(":")[0] for f in small} == {"x", "y"}

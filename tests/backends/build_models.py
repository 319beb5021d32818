"""Small ONNX models for the build tests, each with one property that a builder reacts to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

BATCH = ["batch", 8, 16, 16]


def _save(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, list[int | str]],
    outputs: dict[str, tuple[int, list[int | str]]],
    weights: dict[str, npt.NDArray[np.generic]],
    domains: Sequence[str] = (),
) -> Path:
    graph = helper.make_graph(
        list(nodes),
        path.stem,
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(n, t, s) for n, (t, s) in outputs.items()],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(d, 1) for d in domains)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def _conv_weight(dtype: type[np.generic] = np.float32) -> npt.NDArray[np.generic]:
    return (np.random.default_rng(0).standard_normal((8, 8, 3, 3)) / 8).astype(dtype)


def relu(path: Path, shape: list[int | str]) -> Path:
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="/act/Relu")]
    return _save(path, nodes, {"x": shape}, {"y": (TensorProto.FLOAT, shape)}, {})


def conv(path: Path) -> Path:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="/conv/Conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["y"], name="/act/Relu"),
    ]
    return _save(path, nodes, {"x": BATCH}, {"y": (TensorProto.FLOAT, BATCH)}, {"w": _conv_weight()})


def gemm(path: Path) -> Path:
    nodes = [helper.make_node("Gemm", ["x", "w"], ["y"], name="/fc/Gemm")]
    weight = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    return _save(path, nodes, {"x": ["batch", 8]}, {"y": (TensorProto.FLOAT, ["batch", 4])}, {"w": weight})


def quantised(path: Path, scale_shape: tuple[int, ...] = (), convs: int = 3) -> Path:
    """A row of quantised convolutions; ``scale_shape`` () is TensorRT's scalar, (1,) the planted fault."""
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, npt.NDArray[np.generic]] = {}
    last = "x"
    for i in range(convs):
        module = f"/conv{i}"
        weight = _conv_weight()
        weights[f"s{i}"] = np.full(scale_shape, 0.05, np.float32)
        weights[f"z{i}"] = np.zeros(scale_shape, np.int8)
        weights[f"w{i}"] = weight
        weights[f"ws{i}"] = (np.abs(weight).max((1, 2, 3)) / 127).astype(np.float32)
        weights[f"wz{i}"] = np.zeros(8, np.int8)
        nodes += [
            helper.make_node("QuantizeLinear", [last, f"s{i}", f"z{i}"], [f"q{i}"], name=f"{module}/aq/QuantizeLinear"),
            helper.make_node(
                "DequantizeLinear", [f"q{i}", f"s{i}", f"z{i}"], [f"d{i}"], name=f"{module}/aq/Dequantize"
            ),
            helper.make_node(
                "QuantizeLinear", [f"w{i}", f"ws{i}", f"wz{i}"], [f"wq{i}"], name=f"{module}/wq/QuantizeLinear", axis=0
            ),
            helper.make_node(
                "DequantizeLinear", [f"wq{i}", f"ws{i}", f"wz{i}"], [f"wd{i}"], name=f"{module}/wq/Dequantize", axis=0
            ),
            helper.make_node("Conv", [f"d{i}", f"wd{i}"], [f"c{i}"], name=f"{module}/Conv", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"c{i}"], [f"r{i}"], name=f"{module}/Relu"),
        ]
        last = f"r{i}"
    nodes[-1].output[0] = "y"
    return _save(path, nodes, {"x": BATCH}, {"y": (TensorProto.FLOAT, BATCH)}, weights)


def lone_guard(path: Path) -> Path:
    """FP16 convolutions around one FP32 convolution that stands alone between two casts."""
    half, single = TensorProto.FLOAT16, TensorProto.FLOAT
    pads = [1, 1, 1, 1]
    nodes = [
        helper.make_node("Cast", ["x"], ["x16"], name="/in/Cast", to=half),
        helper.make_node("Conv", ["x16", "wa"], ["a"], name="/a/Conv", pads=pads),
        helper.make_node("Cast", ["a"], ["a32"], name="/guard/Cast", to=single),
        helper.make_node("Conv", ["a32", "wg"], ["g"], name="/guard/Conv", pads=pads),
        helper.make_node("Cast", ["g"], ["g16"], name="/guard/Cast_1", to=half),
        helper.make_node("Conv", ["g16", "wb"], ["b"], name="/b/Conv", pads=pads),
        helper.make_node("Cast", ["b"], ["y"], name="/out/Cast", to=single),
    ]
    weights = {"wa": _conv_weight(np.float16), "wg": _conv_weight(), "wb": _conv_weight(np.float16)}
    return _save(path, nodes, {"x": BATCH}, {"y": (TensorProto.FLOAT, BATCH)}, weights)


def nms(path: Path) -> Path:
    nodes = [
        helper.make_node("Relu", ["boxes"], ["b"], name="/head/Relu"),
        helper.make_node("NonMaxSuppression", ["b", "scores", "k", "iou"], ["y"], name="/post/nms"),
    ]
    weights: dict[str, npt.NDArray[np.generic]] = {"k": np.array([3], np.int64), "iou": np.array([0.5], np.float32)}
    inputs: dict[str, list[int | str]] = {"boxes": [1, 10, 4], "scores": [1, 2, 10]}
    return _save(path, nodes, inputs, {"y": (TensorProto.INT64, ["n", 3])}, weights)


def scatter_add(path: Path) -> Path:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="/head/Relu"),
        helper.make_node("ScatterElements", ["r", "i", "u"], ["y"], name="/post/Scatter", axis=0, reduction="add"),
    ]
    weights: dict[str, npt.NDArray[np.generic]] = {"i": np.zeros((1, 8), np.int64), "u": np.ones((1, 8), np.float32)}
    return _save(path, nodes, {"x": [4, 8]}, {"y": (TensorProto.FLOAT, [4, 8])}, weights)


def plugin(path: Path) -> Path:
    nodes = [helper.make_node("MyOp", ["x"], ["y"], name="/head/MyOp", domain="acme")]
    return _save(path, nodes, {"x": [4, 8]}, {"y": (TensorProto.FLOAT, [4, 8])}, {}, domains=("acme",))

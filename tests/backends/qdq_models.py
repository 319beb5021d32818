"""Small Q/DQ models by hand, each with at most one breach of TensorRT's contract, and what an engine makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS = 16


@dataclass
class Graph:
    """Collects nodes and weights; every method returns the name of its result."""

    opset: int = 17
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    seed: int = 0

    def tensor(self, name: str, array: np.ndarray) -> str:
        if name not in {w.name for w in self.weights}:
            self.weights.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op: str, inputs: list[str], name: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def pair(
        self,
        x: str,
        name: str,
        *,
        scale: Any = 0.05,
        zero: int = 0,
        dtype: Any = np.int8,
        axis: int | None = None,
        scale_type: Any = np.float32,
        dequantise: float | None = None,
    ) -> str:
        """QuantizeLinear and DequantizeLinear; a scalar scale is 0-d, a list keeps its shape."""
        scales = np.asarray(scale, scale_type)
        given = [self.tensor(f"{name}.scale", scales), self.tensor(f"{name}.zero", np.full(scales.shape, zero, dtype))]
        attributes = {} if axis is None else {"axis": axis}
        q = self.add("QuantizeLinear", [x, *given], f"{name}/QuantizeLinear", **attributes)
        if dequantise is not None:
            given[0] = self.tensor(f"{name}.scale2", np.asarray(dequantise, scale_type))
        return self.add("DequantizeLinear", [q, *given], f"{name}/DequantizeLinear", **attributes)

    def weight(self, name: str, shape: tuple[int, ...], axis: int | None = 0) -> str:
        """A random weight behind its per-channel pair (axis None: one scale)."""
        rng = np.random.default_rng(len(self.weights) + self.seed)
        values = rng.normal(0, 0.1, shape).astype(np.float32)
        self.tensor(name, values)
        if axis is None:
            return self.pair(name, f"{name}q", scale=float(np.abs(values).max() / 127))
        others = tuple(d for d in range(len(shape)) if d != axis)
        return self.pair(name, f"{name}q", scale=np.abs(values).max(axis=others) / 127, axis=axis)

    def plain(self, name: str, shape: tuple[int, ...]) -> str:
        rng = np.random.default_rng(len(self.weights) + self.seed)
        return self.tensor(name, rng.normal(0, 0.1, shape).astype(np.float32))

    def conv(self, x: str, weight: str, name: str, bias: str = "", **attributes: Any) -> str:
        inputs = [x, weight] + ([bias] if bias else [])
        return self.add("Conv", inputs, name, pads=[1, 1, 1, 1], **attributes)

    def model(self, output: str, *, rank: int = 4, also_inputs: tuple[str, ...] = ()) -> onnx.ModelProto:
        dims: list[Any] = ["batch", CHANNELS, 16, 16] if rank == 4 else ["batch", CHANNELS]
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)]
        for name in also_inputs:
            array = next(w for w in self.weights if w.name == name)
            inputs.append(helper.make_tensor_value_info(name, array.data_type, list(array.dims)))
        made = helper.make_model(
            helper.make_graph(
                self.nodes,
                "g",
                inputs,
                [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
                self.weights,
            ),
            opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=8,
        )
        return onnx.shape_inference.infer_shapes(made)


SHAPE = (CHANNELS, CHANNELS, 3, 3)


def chain(**first: Any) -> onnx.ModelProto:
    """Two quantised convolutions; keyword arguments change the first activation's pair."""
    g = Graph()
    y = g.conv(g.pair("x", "a", **first), g.weight("w1", SHAPE), "conv1")
    y = g.add("Relu", [y], "relu")
    y = g.conv(g.pair(y, "b"), g.weight("w2", SHAPE), "conv2")
    return g.model(y)


def one_sided(activation: bool) -> onnx.ModelProto:
    g = Graph()
    if activation:
        y = g.conv(g.pair("x", "a"), g.plain("w1", SHAPE), "conv1")
    else:
        y = g.conv("x", g.weight("w1", SHAPE), "conv1")
    return g.model(g.add("Relu", [y], "relu"))


def wrong_axis() -> onnx.ModelProto:
    g = Graph()
    y = g.conv(g.pair("x", "a"), g.weight("w1", SHAPE, axis=1), "conv1")
    return g.model(g.add("Relu", [y], "relu"))


def quantised_bias() -> onnx.ModelProto:
    g = Graph()
    g.tensor("b1", np.arange(CHANNELS, dtype=np.int32) * 10)
    scale = g.tensor("b1.scale", np.float32(0.001))
    bias = g.add("DequantizeLinear", ["b1", scale], "b1q/DequantizeLinear")
    return g.model(g.conv(g.pair("x", "a"), g.weight("w1", SHAPE), "conv1", bias))


def residual(skip: bool) -> onnx.ModelProto:
    g = Graph()
    x = g.add("Relu", ["x"], "relu0")
    xq = g.pair(x, "a")
    y = g.add("Relu", [g.conv(xq, g.weight("w1", SHAPE), "conv1")], "relu1")
    y = g.conv(g.pair(y, "b"), g.weight("w2", SHAPE), "conv2")
    y = g.add("Relu", [g.add("Add", [y, xq if skip else x], "add")], "relu2")
    y = g.conv(g.pair(y, "c"), g.weight("w3", SHAPE), "conv3")
    return g.model(y)


def concat(scales: tuple[float, float] | None, after: bool = True) -> onnx.ModelProto:
    """Two branches, joined, and a convolution; scales None leaves the branches unquantised before the Concat."""
    g = Graph()
    xq = g.pair("x", "a")
    one = g.add("Relu", [g.conv(xq, g.weight("w1", SHAPE), "conv1")], "relu1")
    two = g.add("Relu", [g.conv(xq, g.weight("w2", SHAPE), "conv2")], "relu2")
    if scales is not None:
        one, two = g.pair(one, "c1", scale=scales[0]), g.pair(two, "c2", scale=scales[1])
    y = g.add("Concat", [one, two], "concat", axis=1)
    if after:
        y = g.pair(y, "d", scale=scales[0] if scales else 0.05)
    y = g.conv(y, g.weight("w3", (CHANNELS, 2 * CHANNELS, 3, 3)), "conv3")
    return g.model(y)


def transposed(axis: int | None = 1) -> onnx.ModelProto:
    g = Graph()
    y = g.add("ConvTranspose", [g.pair("x", "a"), g.weight("w1", SHAPE, axis)], "deconv", pads=[1, 1, 1, 1])
    return g.model(g.add("Relu", [y], "relu"))


def linear(activation: bool = True, weight: bool = True, op: str = "Gemm") -> onnx.ModelProto:
    g = Graph()
    a = g.pair("x", "a") if activation else "x"
    shape = (CHANNELS, CHANNELS)
    if op == "Gemm":
        y = g.add("Gemm", [a, g.weight("w1", shape) if weight else g.plain("w1", shape)], "gemm", transB=1)
    else:
        y = g.add("MatMul", [a, g.weight("w1", shape, axis=1) if weight else g.plain("w1", shape)], "gemm")
    return g.model(y, rank=2)


def float_only() -> onnx.ModelProto:
    g = Graph()
    y = g.conv(g.pair("x", "a"), g.weight("w1", SHAPE), "conv1")
    return g.model(g.add("Softmax", [g.pair(y, "s")], "softmax", axis=1))


def dangling() -> onnx.ModelProto:
    """QuantizeLinear read by a Cast."""
    g = Graph()
    q = g.add("QuantizeLinear", ["x", g.tensor("s", np.float32(0.05)), g.tensor("z", np.int8(0))], "a/QuantizeLinear")
    return g.model(g.add("Cast", [q], "cast", to=TensorProto.FLOAT))


def half_scales(opset: int) -> onnx.ModelProto:
    """FP16 scales with the casts that they need."""
    g = Graph(opset=opset)
    half = g.add("Cast", ["x"], "in", to=TensorProto.FLOAT16)
    a = g.pair(half, "a", scale_type=np.float16)
    values = np.random.default_rng(0).normal(0, 0.1, SHAPE).astype(np.float16)
    g.tensor("w1", values)
    w = g.pair("w1", "w1q", scale=np.abs(values.astype(np.float32)).max((1, 2, 3)) / 127, axis=0, scale_type=np.float16)
    y = g.add("Cast", [g.conv(a, w, "conv1")], "out", to=TensorProto.FLOAT)
    return g.model(y)


def weights_as_inputs() -> onnx.ModelProto:
    g = Graph()
    y = g.conv(g.pair("x", "a"), g.weight("w1", SHAPE), "conv1")
    return g.model(y, also_inputs=("w1", "w1q.scale"))


def clipped_constant() -> onnx.ModelProto:
    """The form of brevitas: INT8 constant -> Clip -> DequantizeLinear."""
    g = Graph()
    g.tensor("w1", np.random.default_rng(0).integers(-127, 128, SHAPE).astype(np.int8))
    low, high = g.tensor("low", np.int8(-127)), g.tensor("high", np.int8(127))
    y = g.add("Clip", ["w1", low, high], "clip")
    scale, zero = g.tensor("s", np.full(CHANNELS, 0.001, np.float32)), g.tensor("z", np.zeros(CHANNELS, np.int8))
    w = g.add("DequantizeLinear", [y, scale, zero], "w1q/DequantizeLinear", axis=0)
    return g.model(g.conv(g.pair("x", "a"), w, "conv1"))


def stored_int8() -> onnx.ModelProto:
    """The form of onnxruntime: INT8 constant -> DequantizeLinear."""
    g = Graph()
    g.tensor("w1", np.random.default_rng(0).integers(-127, 128, SHAPE).astype(np.int8))
    scale, zero = g.tensor("s", np.full(CHANNELS, 0.001, np.float32)), g.tensor("z", np.zeros(CHANNELS, np.int8))
    w = g.add("DequantizeLinear", ["w1", scale, zero], "w1q/DequantizeLinear", axis=0)
    return g.model(g.conv(g.pair("x", "a"), w, "conv1"))


def without_zero_point() -> onnx.ModelProto:
    g = Graph()
    s = g.tensor("s", np.float32(0.05))
    q = g.add("QuantizeLinear", ["x", s], "a/QuantizeLinear")
    a = g.add("DequantizeLinear", [q, s], "a/DequantizeLinear")
    return g.model(g.conv(a, g.weight("w1", SHAPE), "conv1"))


@dataclass
class Built:
    """What TensorRT-RTX said: whether it built, and the types that matrix layers read, by ONNX node."""

    built: bool
    reason: str
    reads: dict[str, str]
    layers: list[str]


def build(model: onnx.ModelProto, folder: Path, name: str = "m") -> Built:
    """Build in a process of its own (SM89) and read the layers."""
    from deploychain.backends.tensorrt_build import BuildRequest, build_engine
    from deploychain.engine.layertext import parse_layers_text

    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    done = build_engine(
        BuildRequest("tensorrt_rtx", path, folder / f"{name}.engine", compute_capability="8.9"), folder, timeout=120
    )
    reads: dict[str, str] = {}
    lines: list[str] = []
    for layer in parse_layers_text(done.text):
        types = [str(t.dtype) for t in layer.inputs]
        made = [str(t.dtype) for t in layer.outputs]
        lines.append(f"{layer.layer_type} {types} -> {made} {' '.join(layer.onnx_nodes)}")
        if layer.layer_type in ("correlation", "gemm", "deconv", "runtime_fusion"):
            for node in layer.onnx_nodes:
                reads[node] = types[0] if types else "none"
    return Built(done.built, done.reason, reads, lines)


def between(op: str, **attributes: Any) -> onnx.ModelProto:
    """An operator between DequantizeLinear and the convolution."""
    g = Graph()
    y = g.add(op, [g.pair("x", "a")], "between", **attributes)
    return g.model(g.conv(y, g.weight("w1", SHAPE), "conv1"))


def weight_of_one_channel() -> onnx.ModelProto:
    """A weight with one output channel: its per-channel scale has shape [1], rightly."""
    g = Graph()
    return g.model(g.conv(g.pair("x", "a"), g.weight("w1", (1, CHANNELS, 3, 3)), "conv1"))


def dynamic_scale() -> onnx.ModelProto:
    """A scale computed from the data."""
    g = Graph()
    largest = g.add("ReduceMax", ["x"], "max", keepdims=0)
    scale = g.add("Div", [largest, g.tensor("levels", np.float32(127))], "scale")
    zero = g.tensor("zero", np.int8(0))
    y = g.add("QuantizeLinear", ["x", scale, zero], "a/QuantizeLinear")
    y = g.add("DequantizeLinear", [y, scale, zero], "a/DequantizeLinear")
    return g.model(g.conv(y, g.weight("w1", SHAPE), "conv1"))


def integer_format() -> onnx.ModelProto:
    """ConvInteger, as onnxruntime's dynamic quantisation writes it."""
    g = Graph()
    y = g.add("Cast", ["x"], "cast", to=TensorProto.UINT8)
    g.tensor("w1", np.random.default_rng(0).integers(-127, 128, SHAPE).astype(np.int8))
    y = g.add("ConvInteger", [y, "w1"], "conv1", pads=[1, 1, 1, 1])
    return g.model(g.add("Cast", [y], "back", to=TensorProto.FLOAT))

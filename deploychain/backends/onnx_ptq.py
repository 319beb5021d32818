"""Post-training quantisation of an ONNX model: Q/DQ by TensorRT's contract, scales from calibration data.

Quantised are the activations and weights of Conv, Gemm and MatMul with constant weights (what TensorRT-RTX runs in
INT8; a quantised ConvTranspose stays Float there), and the skip input of an Add behind such a node, so that the sum
fuses. Weights are symmetric per output channel, activations symmetric per tensor with 0-d scales, biases stay FP32.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from deploychain.backends.onnx_graph import drop_unused_initializers, infer, sort_topologically
from deploychain.errors import StageError
from deploychain.numerics.calibration import LEVELS, Method, amax_of
from deploychain.numerics.range import TensorRange

_WEIGHTED = ("Conv", "Gemm", "MatMul")


@dataclass(frozen=True, slots=True)
class Quantised:
    """What was quantised and what was not."""

    model: ModelProto
    nodes: tuple[str, ...]  # run in INT8
    skips: tuple[str, ...]  # Add nodes whose skip input is quantised
    left: Mapping[str, str]  # quantisable nodes that were left out -> why


def quantise(
    model: ModelProto,
    ranges: Mapping[str, TensorRange],
    *,
    method: Method = "percentile",
    percentile: float = 99.99,
    exclude: Sequence[str] = (),
) -> Quantised:
    """Insert quantisers into a prepared FP32 model.

    Args:
        model: from `onnx_graph.prepare`; not changed.
        ranges: from `onnx_range.measure`, network inputs included.
        exclude: node name patterns (fnmatch) that stay unquantised.

    Raises:
        StageError: the model has quantisers already, or nothing in it can be quantised.
    """
    made = ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    if any(n.op_type == "QuantizeLinear" for n in graph.node):
        raise StageError("the model has QuantizeLinear nodes already", remedy="give the FP32 model")
    work = _Quantiser(made, ranges, method, percentile)
    chosen: list[NodeProto] = []
    left: dict[str, str] = {}
    for node in graph.node:
        if node.op_type not in _WEIGHTED:
            continue
        reason = work.reason_against(node)
        if any(fnmatch.fnmatchcase(node.name, pattern) for pattern in exclude):
            reason = "excluded"
        if reason:
            left[node.name] = reason
        else:
            chosen.append(node)
    if not chosen:
        why = "; ".join(f"{n}: {r}" for n, r in list(left.items())[:3]) or "it has no Conv, Gemm or MatMul"
        raise StageError(f"nothing can be quantised: {why}")
    skips = [s for s in (work.skip_of(node, chosen) for node in graph.node) if s is not None]
    for node in chosen:
        node.input[0] = work.activation(node.input[0])
        node.input[1] = work.weight(node)
    for node, index in skips:
        node.input[index] = work.activation(node.input[index])
    graph.node.extend(work.added)
    sort_topologically(graph)
    drop_unused_initializers(graph)
    del graph.value_info[:]
    return Quantised(infer(made), tuple(n.name for n in chosen), tuple(n.name for n, _ in skips), left)


class _Quantiser:
    def __init__(self, model: ModelProto, ranges: Mapping[str, TensorRange], method: Method, percentile: float) -> None:
        self.graph = model.graph
        self.ranges = ranges
        self.method: Method = method
        self.percentile = percentile
        self.weights = {t.name: t for t in model.graph.initializer}
        self.made = {out: node for node in model.graph.node for out in node.output}
        self.added: list[NodeProto] = []
        self.done: dict[str, str] = {}

    def reason_against(self, node: NodeProto) -> str:
        if len(node.input) < 2 or node.input[1] not in self.weights:
            return "its second operand is no constant"
        if self.weights[node.input[1]].data_type != TensorProto.FLOAT:
            return "its weights are not FP32"
        if node.op_type == "MatMul" and len(self.weights[node.input[1]].dims) != 2:
            return "its weights are not a matrix"
        found = self.ranges.get(node.input[0])
        if found is None or found.count == 0:
            return "no calibration data reached its input"
        if found.abs_max == 0.0:
            return "its input is always zero"
        return ""

    def skip_of(self, node: NodeProto, chosen: Sequence[NodeProto]) -> tuple[NodeProto, int] | None:
        """The input of an Add to quantise: the one that is not made by a quantised node, when the other is."""
        if node.op_type != "Add" or any(n in self.weights for n in node.input):
            return None
        names = {n.name for n in chosen}
        quantised = [self._by(name, names) for name in node.input]
        if quantised == [False, False]:
            return None
        # Two convolutions: either may be the skip; the shortcut is usually the second operand.
        index = 1 if quantised[0] else 0
        found = self.ranges.get(node.input[index])
        # A broadcast operand (a position embedding) is no skip.
        other = self.ranges.get(node.input[1 - index])
        if found is None or other is None or found.abs_max == 0.0 or found.shape != other.shape or len(found.shape) < 4:
            return None
        return node, index

    def _by(self, name: str, chosen: set[str]) -> bool:
        node = self.made.get(name)
        return node is not None and node.name in chosen

    def activation(self, name: str) -> str:
        if name not in self.done:
            amax = amax_of(self.ranges[name], self.method, self.percentile)
            scale = np.asarray(max(amax, 1e-30) / LEVELS, np.float32)
            self.done[name] = self._pair(name, scale, np.asarray(0, np.int8), None)
        return self.done[name]

    def weight(self, node: NodeProto) -> str:
        name = node.input[1]
        transposed = node.op_type == "Gemm" and any(a.name == "transB" and a.i for a in node.attribute)
        axis = 0 if node.op_type == "Conv" or transposed else 1
        key = f"{name}@{axis}"
        if key not in self.done:
            values = numpy_helper.to_array(self.weights[name])
            others = tuple(i for i in range(values.ndim) if i != axis)
            amax = np.abs(values).max(axis=others)
            scale = (np.where(amax > 0, amax, 1.0) / LEVELS).astype(np.float32)
            self.done[key] = self._pair(name, scale, np.zeros(len(scale), np.int8), axis)
        return self.done[key]

    def _pair(self, name: str, scale: npt.NDArray[np.float32], zero: npt.NDArray[np.int8], axis: int | None) -> str:
        stem = name if axis is None else f"{name}/axis{axis}"
        names = [f"{stem}/quantise/{part}" for part in ("scale", "zero_point")]
        self.graph.initializer.append(numpy_helper.from_array(scale, names[0]))
        self.graph.initializer.append(numpy_helper.from_array(zero, names[1]))
        codes, output = f"{stem}/quantised", f"{stem}/dequantised"
        pair = (
            helper.make_node("QuantizeLinear", [name, *names], [codes], name=f"{stem}/QuantizeLinear"),
            helper.make_node("DequantizeLinear", [codes, *names], [output], name=f"{stem}/DequantizeLinear"),
        )
        if axis is not None:
            for node in pair:
                node.attribute.append(helper.make_attribute("axis", axis))
        self.added.extend(pair)
        return output

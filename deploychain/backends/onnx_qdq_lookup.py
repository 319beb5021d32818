"""What the Q/DQ rules ask of a graph: who makes and reads a tensor, which constant it is, what dequantises it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from deploychain.backends import onnx_graph
from deploychain.engine.origin import torch_module

Severity = Literal["error", "warning", "note"]

# DequantizeLinear commutes with these: the layer behind them is still built in INT8. Not with Relu or AveragePool.
_TRANSPARENT = ("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Cast", "MaxPool")


@dataclass(frozen=True, slots=True)
class QdqFinding:
    """One breach of the contract."""

    node: str
    module: str  # torch module, empty where unknown
    kind: str
    severity: Severity
    detail: str  # what is wrong, and what TensorRT does with it
    remedy: str
    fixable: bool = False  # `fix_qdq` repairs it


class Lookup:
    """Lookups over one graph. Constants are initializers and Constant nodes, also behind Identity."""

    def __init__(self, model: ModelProto, modules: Mapping[str, str]) -> None:
        graph = model.graph
        self.opset = onnx_graph.opset(model)
        self.modules = modules
        self.made = {output: node for node in graph.node for output in node.output}
        self.readers: dict[str, list[tuple[NodeProto, int]]] = defaultdict(list)
        for node in graph.node:
            for index, name in enumerate(node.input):
                self.readers[name].append((node, index))
        self.inputs = {v.name for v in graph.input}
        self.outputs = {v.name for v in graph.output}
        self.weights: dict[str, TensorProto] = {t.name: t for t in graph.initializer}

    def finding(
        self, node: NodeProto, kind: str, severity: Severity, detail: str, remedy: str, fixable: bool = False
    ) -> QdqFinding:
        name = node.name or node.output[0]
        module = self.modules.get(name)
        return QdqFinding(
            name, module if module is not None else torch_module(name) or "", kind, severity, detail, remedy, fixable
        )

    def constant(self, name: str) -> TensorProto | None:
        if name in self.weights:
            return self.weights[name]
        node = self.made.get(name)
        if node is None:
            return None
        if node.op_type == "Identity":
            return self.constant(node.input[0])
        if node.op_type == "Constant":
            values: list[TensorProto] = [a.t for a in node.attribute if a.name == "value"]
            return values[0] if values else None
        return None

    def array(self, name: str) -> npt.NDArray[np.generic] | None:
        tensor = self.constant(name)
        return None if tensor is None else numpy_helper.to_array(tensor)

    def dequantizer(self, name: str) -> NodeProto | None:
        """The DequantizeLinear that makes a tensor, also behind operators that TensorRT moves it across."""
        node = self.made.get(name)
        while node is not None and node.op_type in _TRANSPARENT:
            node = self.made.get(node.input[0])
        if node is not None and node.op_type == "Concat":
            sources = [self.dequantizer(part) for part in node.input]
            return sources[0] if self.one_scale(sources) else None
        return node if node is not None and node.op_type == "DequantizeLinear" else None

    def one_scale(self, dequantizers: Sequence[NodeProto | None]) -> bool:
        """Whether all are there and have the same scale."""
        scales = [self.array(d.input[1]) for d in dequantizers if d is not None]
        known = [float(s.ravel()[0]) for s in scales if s is not None and s.size == 1]
        return len(known) == len(dequantizers) and len(set(known)) == 1

    def is_weight(self, dequantizer: NodeProto) -> bool:
        """Whether a DequantizeLinear gives a constant: of an INT8 constant, or of a quantised FP32 constant."""
        source = dequantizer.input[0]
        node = self.made.get(source)
        while node is not None and node.op_type in ("QuantizeLinear", "Clip"):
            source = node.input[0]
            node = self.made.get(source)
        return self.constant(source) is not None


def serves_weight(graph: Lookup, node: NodeProto) -> bool:
    """Whether a Q or DQ belongs to a constant (a weight or bias) rather than to an activation."""
    if node.op_type == "DequantizeLinear":
        return graph.is_weight(node)
    return graph.constant(node.input[0]) is not None

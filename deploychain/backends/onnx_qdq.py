"""TensorRT's Q/DQ contract, checked on any Q/DQ model, whoever made it, and repaired where that is mechanical.

What each breach does was seen by building with TensorRT-RTX (docs/results/qdq.md). Most of them fail silently: the
layer is built in FP32 and nothing says so.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, numpy_helper

from deploychain.backends import onnx_graph
from deploychain.backends.onnx_qdq_lookup import Lookup, QdqFinding, serves_weight
from deploychain.backends.onnx_qdq_rules import RULES, WEIGHTED

__all__ = ["QdqFinding", "check_qdq", "fix_qdq"]

_QUANTISED_TYPES = (TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32)


def check_qdq(model: ModelProto, modules: Mapping[str, str] | None = None) -> list[QdqFinding]:
    """Find what breaks TensorRT's rules for explicit quantisation.

    Args:
        model: any ONNX model; one without Q/DQ has no finding.
        modules: node name -> torch module; default: read from the node's name.

    Returns:
        Findings in graph order. ``error``: the build fails, or a layer silently leaves INT8. ``warning``: it costs
        speed or accuracy. ``note``: worth knowing.
    """
    graph = Lookup(model, modules or {})
    return [found for node in model.graph.node for rule in RULES.get(node.op_type, ()) for found in rule(graph, node)]


def fix_qdq(model: ModelProto) -> tuple[ModelProto, list[QdqFinding]]:
    """Repair what is mechanical: scales of shape [1], quantised biases, weights among the inputs, clipped constants.

    Returns:
        A new model, and the findings that it no longer has. The function that the model computes stays the same (a
        quantised bias keeps its quantised value).
    """
    fixed = onnx_graph.prepare(model)
    before = [f for f in check_qdq(model) if f.fixable]
    _drop_constant_clips(fixed.graph)
    _make_scales_scalar(fixed)
    _dequantise_biases(fixed)
    onnx_graph.drop_unused_initializers(fixed.graph)
    # Findings name a node without a name by its output; in the prepared model it has got one.
    known = {n.output[0]: n.name or n.output[0] for n in model.graph.node}
    names = {n.name: known.get(n.output[0], n.name) for n in fixed.graph.node}
    left = {(names.get(f.node, f.node), f.kind) for f in check_qdq(fixed)}
    return fixed, [f for f in before if (f.node, f.kind) not in left]


def _drop_constant_clips(graph: GraphProto) -> None:
    weights = {t.name: t for t in graph.initializer}
    for node in [n for n in graph.node if n.op_type == "Clip" and n.input[0] in weights]:
        if weights[node.input[0]].data_type not in _QUANTISED_TYPES:
            continue
        bounds = [numpy_helper.to_array(weights[n]) if n in weights else None for n in (*node.input[1:3], "", "")[:2]]
        low, high = bounds
        values = np.clip(numpy_helper.to_array(weights[node.input[0]]), low, high)
        weights[node.input[0]].CopyFrom(numpy_helper.from_array(values, node.input[0]))
        for reader in graph.node:
            for index, name in enumerate(reader.input):
                if name == node.output[0]:
                    reader.input[index] = node.input[0]
        graph.node.remove(node)


def _make_scales_scalar(model: ModelProto) -> None:
    lookup = Lookup(model, {})
    for node in model.graph.node:
        if node.op_type not in ("QuantizeLinear", "DequantizeLinear") or serves_weight(lookup, node):
            continue
        for index in range(1, len(node.input)):
            tensor = lookup.constant(node.input[index])
            if tensor is None or not tensor.dims or numpy_helper.to_array(tensor).size != 1:
                continue
            name = f"{node.input[index]}_0d"
            if name not in lookup.weights:
                scalar = numpy_helper.from_array(numpy_helper.to_array(tensor).reshape(()), name)
                model.graph.initializer.append(scalar)
                lookup.weights[name] = scalar
            node.input[index] = name
        for attribute in [a for a in node.attribute if a.name == "axis"]:
            node.attribute.remove(attribute)


def _dequantise_biases(model: ModelProto) -> None:
    lookup = Lookup(model, {})
    for node in model.graph.node:
        if node.op_type not in WEIGHTED or len(node.input) < 3:
            continue
        dequantizer = lookup.dequantizer(node.input[2])
        if dequantizer is None:
            continue
        stored, scale = lookup.array(dequantizer.input[0]), lookup.array(dequantizer.input[1])
        if stored is None or scale is None:
            continue
        name = f"{node.input[2]}_fp32"
        value = (stored.astype(np.float64) * scale.astype(np.float64)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(value, name))
        node.input[2] = name
    read = {name for node in model.graph.node for name in node.input} | {v.name for v in model.graph.output}
    for node in [n for n in model.graph.node if n.op_type == "DequantizeLinear" and n.output[0] not in read]:
        model.graph.node.remove(node)

"""Edits of one ONNX graph that keep its function: names, constants, identities, unused weights, order."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, numpy_helper

from deploychain.errors import StageError


def name_nodes(graph: GraphProto) -> None:
    seen: Counter[str] = Counter()
    taken = {n.name for n in graph.node}
    for index, node in enumerate(graph.node):
        base = node.name or f"{node.op_type}_{index}"
        name = base
        while name in seen or (name != node.name and name in taken):
            seen[base] += 1
            name = f"{base}_{seen[base]}"
        seen[name] += 0
        node.name = name


def constants_to_initializers(graph: GraphProto) -> None:
    for node in [n for n in graph.node if n.op_type == "Constant" and not n.domain]:
        attribute = node.attribute[0]
        value = onnx.helper.get_attribute_value(attribute)
        if attribute.name == "value":
            tensor = TensorProto()
            tensor.CopyFrom(value)
        elif attribute.name in ("value_float", "value_floats"):
            tensor = numpy_helper.from_array(np.asarray(value, np.float32))
        elif attribute.name in ("value_int", "value_ints"):
            tensor = numpy_helper.from_array(np.asarray(value, np.int64))
        else:
            continue
        tensor.name = node.output[0]
        if any(v.name == tensor.name for v in graph.output):
            continue
        graph.initializer.append(tensor)
        graph.node.remove(node)


def fold_identities(graph: GraphProto) -> None:
    weights = {t.name for t in graph.initializer}
    outputs = {v.name for v in graph.output}
    rename: dict[str, str] = {}
    for node in list(graph.node):
        source = rename.get(node.input[0], node.input[0]) if node.input else ""
        if node.op_type == "Identity" and source in weights and node.output[0] not in outputs:
            rename[node.output[0]] = source
            graph.node.remove(node)
    for inner in _all_nodes(graph):
        for index, name in enumerate(inner.input):
            if name in rename:
                inner.input[index] = rename[name]


def drop_unused_initializers(graph: GraphProto) -> None:
    """Remove weights that nothing reads."""
    read = {n for node in _all_nodes(graph) for n in node.input} | {v.name for v in graph.output}
    read |= {v.name for node in _all_nodes(graph) for v in _body_outputs(node)}
    kept = [t for t in graph.initializer if t.name in read]
    if len(kept) != len(graph.initializer):
        copies = [TensorProto.FromString(t.SerializeToString()) for t in kept]
        del graph.initializer[:]
        graph.initializer.extend(copies)


def drop_weight_inputs(graph: GraphProto) -> None:
    """Weights that are listed among the network inputs as well (defaults that a caller could replace) are weights."""
    weights = {t.name for t in graph.initializer}
    kept = [v for v in graph.input if v.name not in weights]
    if len(kept) < len(graph.input):
        copies = [type(v).FromString(v.SerializeToString()) for v in kept]
        del graph.input[:]
        graph.input.extend(copies)


def _body_outputs(node: NodeProto) -> Iterator[onnx.ValueInfoProto]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield from attribute.g.output


def _all_nodes(graph: GraphProto) -> Iterator[NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _all_nodes(attribute.g)
            for body in attribute.graphs:
                yield from _all_nodes(body)


def sort_topologically(graph: GraphProto) -> None:
    """Order the nodes so that each tensor is made before it is read; the given order is kept where it can be.

    Raises:
        StageError: the graph has a cycle.
    """
    producer = {out: i for i, node in enumerate(graph.node) for out in node.output if out}
    waiting = [
        {producer[n] for n in (*node.input, *captured(node)) if n in producer and producer[n] != i}
        for i, node in enumerate(graph.node)
    ]
    if all(all(p < i for p in needs) for i, needs in enumerate(waiting)):
        return
    readers: dict[int, list[int]] = defaultdict(list)
    for i, needs in enumerate(waiting):
        for p in needs:
            readers[p].append(i)
    ready = [i for i, needs in enumerate(waiting) if not needs]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        current = heapq.heappop(ready)
        order.append(current)
        for reader in readers[current]:
            waiting[reader].discard(current)
            if not waiting[reader]:
                heapq.heappush(ready, reader)
    if len(order) != len(waiting):
        stuck = next(graph.node[i].name for i, needs in enumerate(waiting) if needs)
        raise StageError("the graph has a cycle", where=stuck)
    nodes = [graph.node[i] for i in order]
    copies = []
    for node in nodes:
        copy = NodeProto()
        copy.CopyFrom(node)
        copies.append(copy)
    del graph.node[:]
    graph.node.extend(copies)


def captured(node: NodeProto) -> Iterator[str]:
    """Names that the bodies of a control-flow node read from outside (and some that they make themselves)."""
    for attribute in node.attribute:
        for body in (*([attribute.g] if attribute.type == AttributeProto.GRAPH else []), *attribute.graphs):
            for inner in body.node:
                yield from inner.input
                yield from captured(inner)
            yield from (v.name for v in body.output)

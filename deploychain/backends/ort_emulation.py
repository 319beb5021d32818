"""FP16 rounding emulation of an ONNX graph, so that a CPU shows what FP16 does to the values.

onnxruntime's CPU kernels compute FP16 graphs in FP32 and drop the casts between nodes: nothing in between is rounded
and an overflow disappears. The emulated graph holds every FP16 tensor as FP32 and sends each result of an FP16 node
through ``Cast(FLOAT16) -> Cast(FLOAT)``, which onnxruntime keeps. So each node computes in FP32 on FP16 values
(as tensor cores accumulate) and rounds once, to nearest even; values beyond 65504 become infinite. A fused GPU kernel
may round less often: the emulation is on the careful side, and is not a GPU result. BF16, for which the CPU has no
kernels at all, is emulated in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, inliner, numpy_helper

from deploychain.errors import StageError

_HALF = {TensorProto.FLOAT16: "FP16", TensorProto.BFLOAT16: "BF16"}
_FP32 = TensorProto.FLOAT

# Operators whose results are values that they were given (or integers, zero, a negation): already FP16 numbers,
# another rounding would change nothing. Left out of the rounding for speed only.
_EXACT = frozenset(
    """Abs Ceil Clip Compress Concat Constant DepthToSpace Dropout Expand Flatten Floor Gather GatherElements GatherND
    GlobalMaxPool Identity If Loop Max MaxPool Min Neg ReduceMax ReduceMin Relu Reshape Scan Sign Slice SpaceToDepth
    Split Squeeze Tile TopK Transpose Trilu Unsqueeze Where""".split()  # noqa: SIM905
)
# Attributes that name the type of a result.
_TYPE_ATTRIBUTES = frozenset(("dtype", "output_datatype", "stash_type"))
# Float weights above this many elements are left out of the copy that types are inferred on (they only cost memory).
_LARGE = 1024


def half_types(model: ModelProto) -> tuple[str, ...]:
    """Which half precisions the model's tensors have: FP16, BF16, both or none."""
    found = set(tensor_types(model).values())
    return tuple(name for kind, name in _HALF.items() if kind in found)


def tensor_types(model: ModelProto) -> dict[str, int]:
    """Element type (``onnx.TensorProto`` value) of every tensor of the main graph and its subgraphs, as inferred."""
    typed = _inferred(model)
    types: dict[str, int] = {}
    for graph in _graphs(typed.graph):
        types |= _own_types(graph)
    return types


def emulate_fp16(model: ModelProto) -> ModelProto:
    """A copy of the model that computes in FP32 and rounds every FP16 (or BF16) result.

    Inputs and outputs keep their names and types. A model without them comes back equal in function.

    Args:
        model: any valid ONNX model, weights loaded (no external data). It is not changed.

    Raises:
        StageError: the type of a node's result cannot be inferred, so that rounding it would be a guess.
    """
    if model.functions:
        model = inliner.inline_local_functions(model)
    result = ModelProto()
    result.CopyFrom(model)
    _Emulation(_inferred(model)).run(result.graph)
    return result


class _Emulation:
    """Rewrites one model in place."""

    def __init__(self, typed: ModelProto) -> None:
        self._types: dict[str, int] = {}
        self._used: set[str] = set()
        for graph in _graphs(typed.graph):
            own = _own_types(graph)
            self._types |= own
            self._used |= own.keys()
            self._used.update(name for node in graph.node for name in node.output)

    def run(self, graph: GraphProto) -> None:
        """Rewrite the main graph: the types at its border stay, behind casts."""
        weights = {tensor.name for tensor in graph.initializer}
        inputs = [v for v in graph.input if self._is_half(v.name) and v.name not in weights]
        outputs = [v for v in graph.output if self._is_half(v.name)]
        rename = {v.name: self._fresh(v.name, "fp32") for v in (*inputs, *outputs)}
        first = [_cast(v.name, rename[v.name], _FP32) for v in inputs]
        fed = {v.name for v in inputs}
        last = [_cast(rename[v.name], v.name, self._types[v.name]) for v in outputs if v.name not in fed]
        kept = [(v.name, v.type.tensor_type.elem_type) for v in (*graph.input, *graph.output) if v.name not in weights]
        self._rewrite(graph, rename, first, last)
        types = dict(kept)
        for value in (*graph.input, *graph.output):
            if value.name in types:
                value.type.tensor_type.elem_type = types[value.name]

    def _rewrite(
        self, graph: GraphProto, rename: Mapping[str, str], first: Iterable[NodeProto], last: Iterable[NodeProto]
    ) -> None:
        for tensor in graph.initializer:
            tensor.name = rename.get(tensor.name, tensor.name)
            if tensor.data_type in _HALF:
                tensor.CopyFrom(_widened(tensor))
        for value in (*graph.input, *graph.output):
            if value.type.tensor_type.elem_type in _HALF:
                value.type.tensor_type.elem_type = _FP32
        nodes = [*first, *(made for node in graph.node for made in self._node(node, rename)), *last]
        del graph.node[:]
        graph.node.extend(nodes)
        del graph.value_info[:]  # stale: types and names changed

    def _node(self, node: NodeProto, rename: Mapping[str, str]) -> Iterator[NodeProto]:
        made = NodeProto()
        made.CopyFrom(node)
        for index, name in enumerate(node.input):
            made.input[index] = rename.get(name, name)
        for attribute in made.attribute:
            self._attribute(attribute, rename)
        casts: list[NodeProto] = []
        for index, name in enumerate(node.output):
            if not name:
                continue
            wide = rename.get(name, name)
            made.output[index] = wide
            if not self._result_is_half(node, name) or node.op_type in _EXACT:
                continue
            half = self._fresh(name, "half")
            if node.op_type == "Cast":
                made.output[index] = half
            else:
                made.output[index] = self._fresh(name, "exact")
                casts.append(_cast(made.output[index], half, self._types[name]))
            casts.append(_cast(half, wide, _FP32))
        yield made
        yield from casts

    def _attribute(self, attribute: AttributeProto, rename: Mapping[str, str]) -> None:
        if attribute.name in _TYPE_ATTRIBUTES and attribute.i in _HALF:
            attribute.i = _FP32
        for tensor in (attribute.t, *attribute.tensors):
            if tensor.data_type in _HALF:
                tensor.CopyFrom(_widened(tensor))
        for graph in (*([attribute.g] if attribute.type == AttributeProto.GRAPH else []), *attribute.graphs):
            self._rewrite(graph, rename, (), ())

    def _is_half(self, name: str) -> bool:
        return self._types.get(name) in _HALF

    def _result_is_half(self, node: NodeProto, name: str) -> bool:
        found = self._types.get(name)
        if found is None:
            raise StageError(
                f"FP16 cannot be emulated: the type of {name!r}, made by {node.domain or 'ai.onnx'}.{node.op_type}, "
                "is not known",
                where=node.name or name,
                remedy="add its value_info to the model, or replace the operator by standard ones",
            )
        return found in _HALF

    def _fresh(self, name: str, suffix: str) -> str:
        candidate, count = f"{name}/{suffix}", 1
        while candidate in self._used:
            candidate, count = f"{name}/{suffix}_{count}", count + 1
        self._used.add(candidate)
        return candidate


def _cast(source: str, target: str, to: int) -> NodeProto:
    return helper.make_node("Cast", [source], [target], name=f"{target}/Cast", to=to)


def _widened(tensor: TensorProto) -> TensorProto:
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name)


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """The graph and all graphs inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from _graphs(attribute.g)
            for inner in attribute.graphs:
                yield from _graphs(inner)


def _own_types(graph: GraphProto) -> dict[str, int]:
    """Name to element type; 0 for what is no tensor (sequences, optionals)."""
    types: dict[str, int] = {}
    for value in (*graph.input, *graph.output, *graph.value_info):
        kind = value.type.WhichOneof("value")
        if kind == "tensor_type" and value.type.tensor_type.elem_type:
            types[value.name] = value.type.tensor_type.elem_type
        elif kind not in (None, "tensor_type"):
            types[value.name] = TensorProto.UNDEFINED
    types |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    return types


def _inferred(model: ModelProto) -> ModelProto:
    """The model with inferred types, without the values of its large float weights (they do not matter for types)."""
    skeleton = ModelProto()
    skeleton.CopyFrom(model)
    for graph in _graphs(skeleton.graph):
        for tensor in graph.initializer:
            if tensor.data_type in (*_HALF, _FP32) and int(np.prod(tensor.dims, dtype=np.int64)) > _LARGE:
                for data in ("raw_data", "float_data", "int32_data"):
                    tensor.ClearField(data)
    return onnx.shape_inference.infer_shapes(skeleton, data_prop=True)

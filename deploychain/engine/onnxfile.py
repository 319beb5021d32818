"""The nodes of an ONNX file, read without the onnx package: names, operators, module metadata, element types.

A protobuf wire reader for the few fields that matter (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto,
https://protobuf.dev/programming-guides/encoding). The file is mapped, not loaded: weights are skipped over.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deploychain.engine.classify import QUANTISED
from deploychain.engine.origin import module_from_scopes
from deploychain.errors import ArtifactError
from deploychain.precision import Precision

_ELEMENT = {
    1: Precision.FP32,
    2: Precision.UINT8,
    3: Precision.INT8,
    6: Precision.INT32,
    7: Precision.INT64,
    9: Precision.BOOL,
    10: Precision.FP16,
    11: Precision.FP64,
    16: Precision.BF16,
    17: Precision.FP8,
    18: Precision.FP8,
    19: Precision.FP8,
    20: Precision.FP8,
    22: Precision.INT4,
    23: Precision.FP4,
}
# Operators that compute no values: nothing is asked of them.
_SILENT = frozenset(
    [
        *("Cast", "CastLike", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "Constant", "Identity"),
        *("ConstantOfShape", "Shape", "Size", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Expand"),
        *("Slice", "Split", "Concat", "Gather", "GatherElements", "GatherND", "Range", "Tile", "Pad", "NonZero"),
        *("ScatterElements", "ScatterND", "DepthToSpace", "SpaceToDepth", "If", "Loop", "Scan"),
    ]
)
_RESHAPES = frozenset({"Transpose", "Reshape", "Identity", "Squeeze", "Unsqueeze", "Flatten"})
_MAX_DEPTH = 16


@dataclass(slots=True)
class OnnxNode:
    """One node as the file has it."""

    name: str = ""
    op_type: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    to: int = 0  # of Cast; data type of a Constant
    scopes: str = ""


@dataclass(frozen=True, slots=True)
class OnnxGraph:
    """What an engine is compared with.

    ``requested`` gives the precision that a strongly typed network asks of each node that computes; ``quantised`` the
    nodes whose data inputs all come from DequantizeLinear.
    """

    op_types: Mapping[str, str]
    modules: Mapping[str, str]
    requested: Mapping[str, Precision]
    quantised: frozenset[str]
    opset: int | None


class _Bad(Exception):
    """The bytes are no protobuf message."""


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise _Bad
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Field number and value: an int for varints, a view for length-delimited fields; fixed widths are skipped."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise _Bad
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
        elif wire == 2:
            length, at = _varint(data, at)
            if at + length > end:
                raise _Bad
            yield number, data[at : at + length]
            at += length
        elif wire == 1:
            at += 8
        elif wire == 5:
            at += 4
        else:
            raise _Bad
    if at != end:
        raise _Bad


def _string(value: int | memoryview) -> str:
    return bytes(value).decode("utf-8", errors="replace") if isinstance(value, memoryview) else ""


def _views(data: memoryview, wanted: int) -> Iterator[memoryview]:
    for number, value in _fields(data):
        if number == wanted and isinstance(value, memoryview):
            yield value


def _tensor(data: memoryview) -> tuple[str, int]:
    name, kind = "", 0
    for number, value in _fields(data):
        if number == 2 and isinstance(value, int):
            kind = value
        elif number == 8:
            name = _string(value)
    return name, kind


def _value_info(data: memoryview) -> tuple[str, int]:
    name, kind = "", 0
    for number, value in _fields(data):
        if number == 1:
            name = _string(value)
        elif number == 2 and isinstance(value, memoryview):
            for tensor in _views(value, 1):
                kind = next((v for n, v in _fields(tensor) if n == 1 and isinstance(v, int)), 0)
    return name, kind


def _node(data: memoryview, graphs: list[memoryview]) -> OnnxNode:
    node = OnnxNode()
    for number, value in _fields(data):
        if number == 1:
            node.inputs.append(_string(value))
        elif number == 2:
            node.outputs.append(_string(value))
        elif number == 3:
            node.name = _string(value)
        elif number == 4:
            node.op_type = _string(value)
        elif number == 5 and isinstance(value, memoryview):
            _attribute(value, node, graphs)
        elif number == 9 and isinstance(value, memoryview):
            pair = {n: _string(v) for n, v in _fields(value)}
            if pair.get(1) == "pkg.torch.onnx.name_scopes":
                node.scopes = pair.get(2, "")
    return node


def _attribute(data: memoryview, node: OnnxNode, graphs: list[memoryview]) -> None:
    name = ""
    for number, value in _fields(data):
        if number == 1:
            name = _string(value)
        elif number == 3 and name == "to" and isinstance(value, int):
            node.to = value
        elif number == 5 and name == "value" and isinstance(value, memoryview):
            node.to = _tensor(value)[1]
        elif number in (6, 11) and isinstance(value, memoryview):
            graphs.append(value)


def _graph(data: memoryview, nodes: list[OnnxNode], types: dict[str, int], depth: int) -> None:
    inner: list[memoryview] = []
    for number, value in _fields(data):
        if not isinstance(value, memoryview):
            continue
        if number == 1:
            nodes.append(_node(value, inner))
        elif number == 5:
            name, kind = _tensor(value)
            types[name] = kind
        elif number in (11, 12, 13):
            name, kind = _value_info(value)
            if kind:
                types.setdefault(name, kind)
    if depth < _MAX_DEPTH:
        for graph in inner:
            _graph(graph, nodes, types, depth + 1)


def read_onnx(path: Path) -> OnnxGraph:
    """Read the nodes of an ONNX file.

    Raises:
        ArtifactError: the file is missing, empty or no ONNX model.
    """
    nodes: list[OnnxNode] = []
    types: dict[str, int] = {}
    opset: int | None = None
    try:
        with path.open("rb") as file:
            # The map closes with its last view: closing it here would fail while an exception still holds one.
            whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        opset = _model(whole, nodes, types)
    except OSError as error:
        raise ArtifactError(f"cannot be read: {error.strerror or error}", where=str(path)) from None
    except (ValueError, _Bad, RecursionError):
        raise ArtifactError(
            "no ONNX model", where=str(path), remedy="pass the file that the engine was built from"
        ) from None
    if not nodes:
        raise ArtifactError("an ONNX model without nodes", where=str(path))
    return _assemble(nodes, types, opset)


# Where tensors can be, by message: field number -> message. In a tensor the search ends.
_HOLDS: Mapping[str, Mapping[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}


def external_files(path: Path) -> tuple[str, ...]:
    """The files in which an ONNX file keeps weights, as it names them: relative to its folder, and not yet trusted.

    Raises:
        ArtifactError: the file cannot be read, or is no ONNX model.
    """
    try:
        with path.open("rb") as file:
            whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return tuple(sorted(set(_locations(whole, "model"))))
    except OSError as error:
        raise ArtifactError(f"cannot be read: {error.strerror or error}", where=str(path)) from None
    except (ValueError, _Bad, RecursionError):
        raise ArtifactError("no ONNX model", where=str(path)) from None


def _locations(data: memoryview, message: str) -> Iterator[str]:
    if message == "tensor":
        outside, location = False, ""
        for number, value in _fields(data):
            if number == 14:
                outside = value == 1
            elif number == 13 and isinstance(value, memoryview):
                pair = {n: _string(v) for n, v in _fields(value)}
                location = pair.get(2, "") if pair.get(1) == "location" else location
        if outside:
            yield location
        return
    for number, value in _fields(data):
        inner = _HOLDS[message].get(number)
        if inner is not None and isinstance(value, memoryview):
            yield from _locations(value, inner)


def _model(whole: memoryview, nodes: list[OnnxNode], types: dict[str, int]) -> int | None:
    opset: int | None = None
    for number, value in _fields(whole):
        if not isinstance(value, memoryview):
            continue
        if number == 7:
            _graph(value, nodes, types, 0)
        elif number == 8:
            pair = dict(_fields(value))
            version = pair.get(2)
            if _string(pair.get(1, 0)) in ("", "ai.onnx") and isinstance(version, int):
                opset = version
    return opset


def _assemble(nodes: list[OnnxNode], types: dict[str, int], opset: int | None) -> OnnxGraph:
    op_types: dict[str, str] = {}
    modules: dict[str, str] = {}
    requested: dict[str, Precision] = {}
    quantised: set[str] = set()
    dequantised: set[str] = set()
    known = {name: _ELEMENT.get(kind) for name, kind in types.items()}
    for node in nodes:
        own = _own_type(node, known)
        for output in node.outputs:
            known.setdefault(output, own)
        carries = node.op_type in _RESHAPES and node.inputs and node.inputs[0] in dequantised
        if node.op_type == "DequantizeLinear" or carries:
            dequantised.update(node.outputs)
        if not node.name:
            continue
        op_types[node.name] = node.op_type
        if node.scopes:
            module = module_from_scopes(node.scopes)
            if module is not None:
                modules[node.name] = module
        if node.op_type in _SILENT:
            continue
        if node.op_type in ("Conv", "ConvTranspose", "Gemm", "MatMul") and all(
            i in dequantised for i in node.inputs[:2]
        ):
            quantised.add(node.name)
        wanted = _asked(node, known)
        if wanted is not None:
            requested[node.name] = wanted
    return OnnxGraph(op_types, modules, requested, frozenset(quantised), opset)


def _own_type(node: OnnxNode, known: Mapping[str, Precision | None]) -> Precision | None:
    """The type of a node's first output, as far as it follows from the types of its inputs."""
    if node.op_type in ("Cast", "Constant", "ConstantOfShape"):
        return _ELEMENT.get(node.to, Precision.FP32 if node.op_type == "ConstantOfShape" and not node.to else None)
    if node.op_type in ("Shape", "Size", "ArgMax", "ArgMin", "NonZero"):
        return Precision.INT64
    if node.op_type == "QuantizeLinear":
        return known.get(node.inputs[2]) if len(node.inputs) > 2 else Precision.UINT8
    if node.op_type == "DequantizeLinear":
        return known.get(node.inputs[1]) if len(node.inputs) > 1 else None
    if node.op_type in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Not", "And", "Or", "IsNaN"):
        return Precision.BOOL
    if node.op_type == "Where" and len(node.inputs) > 1:
        return known.get(node.inputs[1])
    return known.get(node.inputs[0]) if node.inputs else None


def _asked(node: OnnxNode, known: Mapping[str, Precision | None]) -> Precision | None:
    for name in (*node.outputs[:1], *node.inputs):
        found = known.get(name)
        if found is not None and not found.is_index and found not in QUANTISED:
            return found
    return None

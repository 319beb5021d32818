"""What a layer is (arithmetic, copy, data movement, ...) and which precision it computes in, before any judgement.

The rule, best evidence first: weights, tactic name, tensor types. Nothing is guessed: a layer whose evidence is
mixed, missing or contradicts itself has no compute precision.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from deploychain.engine.datatypes import CAST_WORDS, MATRIX_WORDS, MOVE_WORDS, kernel_words, tactic_precision
from deploychain.engine.nodes import nodes_of_layer
from deploychain.precision import Precision
from deploychain.records import EvidenceSource, LayerKind, LayerRecord, TensorRecord

_HELPERS = frozenset(
    [
        "noop",
        "constant",
        "shape_call",
        "dummy_shape_call",
        "signal",
        "wait",
        "signal_and_wait",
        "trainstation",
        "shapehost",
        "shape",
        "fill",
        "assertion",
    ]
)
_COPIES = frozenset(
    [
        "reformat",
        "myelinreformat",
        "cast",
        "copy",
        "hosttodevicecopy",
        "devicetohostcopy",
        "shapehosttodevicecopy",
        "devicetoshapehostcopy",
        "cudareformat",
        "quantize",
        "dequantize",
        "identity",
    ]
)
_MOVES = frozenset(
    [
        "shuffle",
        "reshape",
        "slice",
        "padding",
        "gather",
        "concatenation",
        "concat",
        "transpose",
        "squeeze",
        "unsqueeze",
        "expand",
        "split",
        "reversesequence",
        "scatter",
        "onehot",
    ]
)
_GENERATED = frozenset({"kgen", "runtime_fusion", "runtime_function"})
_MATRIX_TYPES = re.compile(r"conv|gemm|correlation|matrix|fullyconnected|linear|matmul|mha|attention|einsum|rnn", re.I)
_REFORMATTER = re.compile(r" (?:input|output) reformatter \d+$")  # TensorRT 7
# A generated kernel of Q and DQ nodes only is the quantisation itself. TorchScript names nodes by their type.
_QDQ_NODE = re.compile(r"(?:^|[/.])(?:Dynamic)?(?:Quantize|Dequantize)Linear(?:_\d+)?$")
_PROFILE = re.compile(r" \[profile (\d+)\]")

ARITHMETIC = (LayerKind.COMPUTE, LayerKind.OPAQUE)
QUANTISED = frozenset({Precision.INT8, Precision.FP8, Precision.FP4, Precision.INT4})


def is_qdq_node(name: str, op_types: Mapping[str, str] | None = None) -> bool:
    """Whether an ONNX node quantises or dequantises: by its type where the model is known, else by its name."""
    if op_types and name in op_types:
        return op_types[name] in ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
    return _QDQ_NODE.search(name) is not None


def is_matrix_layer(layer: LayerRecord) -> bool:
    """Convolutions, matrix products and their fusions: where tensor cores, and most of the time, are at stake."""
    if layer.layer_type == "kgen":
        return False
    if layer.layer_type == "runtime_fusion":
        return not MATRIX_WORDS.isdisjoint(kernel_words(layer.name))
    if layer.weights is not None and layer.kind is LayerKind.COMPUTE:
        return True
    return _MATRIX_TYPES.search(layer.layer_type) is not None


def has_cast(name: str) -> bool:
    """Whether a generated kernel's name says that it converts inside."""
    return not CAST_WORDS.isdisjoint(kernel_words(name))


def only_moves(layer: LayerRecord) -> bool:
    """A generated kernel whose name lists nothing but reshapes, transposes, copies and casts."""
    words = kernel_words(layer.name)
    return bool(words) and all(word in MOVE_WORDS or word in CAST_WORDS for word in words)


def float_types(tensors: Iterable[TensorRecord]) -> set[Precision]:
    """The types that carry values (not indices, shapes or masks), INT8 and INT4 included."""
    return {t.dtype for t in tensors if t.dtype is not None and not t.dtype.is_index}


def _is_copy(name: str) -> bool:
    if "Reformatting CopyNode for " in name or "DeviceCopy" in name or "HostCopy" in name:
        return True
    return " reformatter " in name and _REFORMATTER.search(name) is not None


def _kind(
    name: str, layer_type: str, parameter_type: str, tensors: Sequence[TensorRecord], nodes: Sequence[str]
) -> tuple[LayerKind, str | None]:
    """The kind, and an origin where the layer is found to be a quantise or dequantise step."""
    key = layer_type.lower()
    if key in _COPIES or _is_copy(name):
        return LayerKind.COPY, "QDQ" if key in ("quantize", "dequantize") else None
    # A runtime function without tensors synchronises; with tensors it computes (instance normalisation).
    if key in _HELPERS or key.endswith("shape_call") or (key == "runtime_function" and not tensors):
        return LayerKind.HELPER, None
    if key == "myelin" or key.startswith("dla") or "{ForeignNode[" in name:
        return LayerKind.OPAQUE, None
    if tensors and all(t.dtype is not None and t.dtype.is_index for t in tensors):
        return LayerKind.INTEGER, None
    if key in _MOVES or parameter_type.lower() in _MOVES:
        return LayerKind.DATA_MOVEMENT, None
    if key == "kgen":
        words = kernel_words(name)
        if words and all(word in CAST_WORDS for word in words):
            return LayerKind.COPY, None
        if nodes and all(is_qdq_node(node) for node in nodes):
            return LayerKind.COPY, "QDQ"
    return LayerKind.COMPUTE, None


def _elements(tensor: TensorRecord) -> int:
    size = 1
    for dim in tensor.dims or ():
        size *= max(dim, 1)
    return size


def _weights_among_constants(layer_type: str, name: str, constants: Sequence[TensorRecord]) -> Precision | None:
    """TensorRT-RTX lists weights, bias and scalar factors together: the largest of them is the weight tensor."""
    if not constants:
        return None
    if layer_type == "runtime_fusion":
        if MATRIX_WORDS.isdisjoint(kernel_words(name)):
            return None
    elif not _MATRIX_TYPES.search(layer_type):
        return None  # a pooling layer's constants are factors, not weights
    largest = max(constants, key=_elements)  # the first of equals: weights come before the bias
    return largest.dtype if _elements(largest) > 1 else None


def _family(precision: Precision) -> str:
    if precision in QUANTISED:
        return "quantised"
    return "full" if precision in (Precision.FP32, Precision.TF32, Precision.FP64) else "half"


def _denies(tactic: str | None, weights: Precision) -> bool:
    """Whether a kernel's name and the weights' type cannot both be true.

    FP32 weights in a TF32 kernel can, and so can FP16 ones in an ``s1688`` kernel (FP16 on Turing, TF32 later). Within
    a family (FP16 and BF16, FP8 and FP4) the name is too loose a word to deny anything.
    """
    told = tactic_precision(tactic) if tactic else None
    if told is None or tactic is None or _family(told) == _family(weights):
        return False
    return told is not Precision.TF32 or _family(weights) != "half" or "tf32" in tactic.lower()


def contradiction(layer: LayerRecord) -> str:
    """Why a layer with weights and a telling kernel computes in nothing known; empty where they agree."""
    if layer.kind is not LayerKind.COMPUTE or layer.compute is not None or layer.weights is None:
        return ""
    if layer.tactic is None or not _denies(layer.tactic, layer.weights):
        return ""
    told = tactic_precision(layer.tactic)
    word = told.value.upper() if told is not None else "?"
    return f"weights {layer.weights.value.upper()}, kernel {word}: the evidence contradicts itself"


def _compute(
    layer_type: str,
    name: str,
    kind: LayerKind,
    inputs: Sequence[TensorRecord],
    outputs: Sequence[TensorRecord],
    weights: Precision | None,
    tactic: str | None,
) -> tuple[Precision | None, EvidenceSource]:
    if kind in (LayerKind.HELPER, LayerKind.COPY, LayerKind.OPAQUE):
        return None, EvidenceSource.NONE
    by_tactic = tactic_precision(tactic) if tactic else None
    if weights is not None:
        if weights is Precision.FP32 and by_tactic is Precision.TF32:
            return Precision.TF32, EvidenceSource.TACTIC
        into = float_types(inputs)
        if weights in QUANTISED and into and into.isdisjoint(QUANTISED) and len(into) == 1:
            # Weight-only quantisation: the weights are dequantised and multiplied in the type of the input.
            return next(iter(into)), EvidenceSource.TENSORS
        return (None, EvidenceSource.NONE) if _denies(tactic, weights) else (weights, EvidenceSource.WEIGHTS)
    if by_tactic is not None:
        return by_tactic, EvidenceSource.TACTIC
    types = float_types(inputs) | float_types(outputs)
    if len(types) == 1:
        return next(iter(types)), EvidenceSource.TENSORS
    if kind is LayerKind.INTEGER:
        index = {t.dtype for t in (*inputs, *outputs) if t.dtype is not None}
        return (next(iter(index)), EvidenceSource.TENSORS) if len(index) == 1 else (None, EvidenceSource.NONE)
    if layer_type in _GENERATED:
        wide = types - QUANTISED
        if len(wide) == 1 and ("Roun" in name or has_cast(name)):
            # Float arithmetic with a quantise or dequantise step at its border.
            return next(iter(wide)), EvidenceSource.TENSORS
    return None, EvidenceSource.NONE


_FIELDS = tuple(f.name for f in fields(LayerRecord))
_PLACE = {name: place for place, name in enumerate(_FIELDS)}
_values = attrgetter(*_FIELDS)


def changed(layer: LayerRecord, **changes: Any) -> LayerRecord:
    """`dataclasses.replace` for layers, several times as fast: an engine may have fifty thousand."""
    values = list(_values(layer))
    for name, value in changes.items():
        values[_PLACE[name]] = value
    return LayerRecord(*values)


def _arithmetic_words(layer: LayerRecord) -> tuple[str, ...]:
    return tuple(word for word in kernel_words(layer.name) if word not in MOVE_WORDS)


def between_casts(layer: LayerRecord) -> bool:
    """A generated kernel that casts first and last: all its arithmetic is in the type that it casts to."""
    words = _arithmetic_words(layer)
    return len(words) > 2 and words[0] in CAST_WORDS and words[-1] in CAST_WORDS


def read_words(layer: LayerRecord) -> LayerRecord:
    """A generated kernel with one cast, at one end: its arithmetic is in the type of the other end."""
    words = _arithmetic_words(layer)
    if layer.layer_type != "kgen" or len(words) < 2 or sum(word in CAST_WORDS for word in words) != 1:
        return layer
    side = layer.inputs if words[-1] in CAST_WORDS else layer.outputs if words[0] in CAST_WORDS else ()
    types = float_types(side)
    if len(types) != 1:
        return layer
    return changed(layer, compute=next(iter(types)), evidence=EvidenceSource.TENSORS)


def make_layer(
    name: str,
    layer_type: str,
    inputs: tuple[TensorRecord, ...] = (),
    outputs: tuple[TensorRecord, ...] = (),
    *,
    constants: tuple[TensorRecord, ...] = (),
    weights: Precision | None = None,
    tactic: str | None = None,
    parameter_type: str = "",
    origin: str | None = None,
    metadata: str = "",
    stream: int | None = None,
    extra: Mapping[str, Any] | None = None,
) -> LayerRecord:
    """Build the record of one layer: kind, compute precision and evidence, ONNX nodes, optimisation profile."""
    nodes, nodes_from = nodes_of_layer(name, layer_type, metadata)
    kind, found_origin = _kind(name, layer_type, parameter_type, (*inputs, *outputs), nodes)
    if weights is None and constants:
        weights = _weights_among_constants(layer_type, name, constants)
    compute, evidence = _compute(layer_type, name, kind, inputs, outputs, weights, tactic)
    profile = _PROFILE.search(name) if "[profile " in name else None
    return LayerRecord(
        name=name,
        layer_type=layer_type,
        kind=kind,
        inputs=inputs,
        outputs=outputs,
        weights=weights,
        tactic=tactic or None,
        compute=compute,
        evidence=evidence,
        onnx_nodes=nodes,
        origin=origin or found_origin,
        metadata=metadata,
        profile=int(profile.group(1)) if profile and len(profile.group(1)) < 9 else None,
        constants=constants,
        parameter_type=parameter_type,
        stream=stream,
        nodes_from=nodes_from,
        extra=extra or _NO_EXTRA,
    )


_NO_EXTRA: Mapping[str, Any] = {}

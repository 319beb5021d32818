"""Asked against built: the verdict of each layer, and why.

What was asked comes from the best source there is: per ONNX node from the strongly typed graph (`requested`), per
layer from ``--layerPrecisions`` (`pinned`), else one precision for the engine. Precision is compared in both
directions: a layer built higher than asked is a fallback, one built lower is demoted (a lone FP32 guard that the
builder folded into FP16). Where the evidence does not decide, the verdict says so.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from deploychain.engine.border import network_border
from deploychain.engine.classify import (
    ARITHMETIC,
    QUANTISED,
    between_casts,
    changed,
    contradiction,
    float_types,
    has_cast,
    is_matrix_layer,
    is_qdq_node,
    only_moves,
    read_words,
)
from deploychain.precision import Precision
from deploychain.records import EvidenceSource, LayerKind, LayerRecord, LayerSummary, LayerVerdict, TensorRecord

MATRIX_OPS = frozenset(
    [
        "Conv",
        "ConvTranspose",
        "ConvInteger",
        "Gemm",
        "MatMul",
        "MatMulInteger",
        "QLinearConv",
        "QLinearMatMul",
        "Einsum",
    ]
)
_MATRIX_NAME = re.compile(r"(?:^|[/._])(?:Conv|ConvTranspose|Gemm|MatMul|Einsum)(?:_\d+)?$")
_FULL = frozenset({Precision.FP64, Precision.FP32, Precision.TF32})

Judged = tuple[LayerVerdict, str, "Precision | None"]
_BETWEEN = "converts at both ends: what was asked lies between the casts, by the kernel's name"
_MOVES = "moves values, computes none"
_CASTS_INSIDE = " at its borders, casts inside: what lies between is not shown"


@dataclass(frozen=True, slots=True)
class _Request:
    """Everything that was asked of one engine."""

    asked: Precision | None
    allowed: frozenset[Precision]
    requested: Mapping[str, Precision] | None
    pinned: Mapping[str, Precision]
    op_types: Mapping[str, str] | None
    network: frozenset[str]  # float tensors of the network's border, and copies of them
    whole: bool = False  # no arithmetic layer runs in a reduced precision
    claimed: frozenset[str] = field(default_factory=frozenset)  # nodes whose matrix product is a layer of its own


def is_matrix_node(name: str, op_types: Mapping[str, str] | None = None) -> bool:
    if op_types and name in op_types:
        return op_types[name] in MATRIX_OPS
    return _MATRIX_NAME.search(name) is not None


def judge_layers(
    layers: Sequence[LayerRecord],
    asked: Precision | None,
    requested: Mapping[str, Precision] | None = None,
    *,
    pinned: Mapping[str, Precision] | Collection[str] = (),
    allowed: Collection[Precision] = (),
    quantised: Collection[str] = (),
    op_types: Mapping[str, str] | None = None,
    network_io: Collection[str] | None = None,
) -> tuple[LayerRecord, ...]:
    """Give each layer its verdict, the reason, and what was asked of it.

    Args:
        layers: records of one engine (one optimisation profile), in order.
        asked: the precision that the whole engine was asked for; None when nothing says it.
        requested: ONNX node name -> precision that the strongly typed graph asks it to compute in. Leave out nodes
            that do no arithmetic (Cast, QuantizeLinear, DequantizeLinear, Constant, shape operators).
        pinned: layer or node name (``*`` as wildcard) -> precision of ``--layerPrecisions``; a plain collection of
            names means FP32 on purpose.
        allowed: the precisions that the build options permitted (``Precision: FP32+FP16+INT8``).
        quantised: ONNX nodes whose inputs come from DequantizeLinear: asked INT8 whatever their tensor types say.
        op_types: ONNX node name -> operator type, where the model is known.
        network_io: names of the network's inputs and outputs; None: found from the data flow.

    Returns:
        The layers, in the same order. Layers that do no arithmetic get ``expected``: nothing was asked of them.
    """
    wanted = dict(requested) if requested is not None else None
    if quantised:
        wanted = {**(wanted or {}), **dict.fromkeys(quantised, Precision.INT8)}
    pins = dict(pinned) if isinstance(pinned, Mapping) else dict.fromkeys(pinned, Precision.FP32)
    types = {layer.compute for layer in layers if layer.kind is LayerKind.COMPUTE and layer.compute is not None}
    for layer in layers:
        if layer.kind in ARITHMETIC:
            types |= float_types((*layer.inputs, *layer.outputs))
    types = {p for p in types if not p.is_index}
    request = _Request(
        asked=asked,
        allowed=frozenset(allowed),
        requested=wanted,
        pinned=pins,
        op_types=op_types,
        network=network_border(layers, network_io),
        whole=bool(types) and types <= _FULL,
        claimed=_claimed(layers, op_types) if wanted is not None else frozenset(),
    )
    return tuple(_apply(layer, request) for layer in layers)


def _claimed(layers: Sequence[LayerRecord], op_types: Mapping[str, str] | None) -> frozenset[str]:
    """The matrix nodes that have a layer of their own; other layers that name them only apply their bias or scale."""
    return frozenset(
        node
        for layer in layers
        if is_matrix_layer(layer)
        for node in layer.onnx_nodes
        if is_matrix_node(node, op_types)
    )


def _apply(layer: LayerRecord, request: _Request) -> LayerRecord:
    if layer.kind not in ARITHMETIC:
        return changed(layer, verdict=LayerVerdict.EXPECTED, reason="does no arithmetic: nothing was asked of it")
    if request.requested is not None and layer.compute is None:
        layer = read_words(layer)
    verdict, reason, asked = _verdict(layer, request)
    denied = contradiction(layer)
    if denied:
        verdict, reason = LayerVerdict.UNKNOWN, denied
    if layer.compute is Precision.TF32 and verdict is LayerVerdict.AS_ASKED:
        reason = "FP32 storage with TF32 math (10-bit mantissa); --noTF32 turns it off"
    compute, evidence = layer.compute, layer.evidence
    if reason == _BETWEEN:
        compute, evidence = asked, EvidenceSource.NETWORK
    if layer.kind is LayerKind.OPAQUE and compute is None and request.requested is not None and asked is not None:
        compute, evidence = asked, EvidenceSource.NETWORK
    return changed(layer, verdict=verdict, reason=reason, asked=asked, compute=compute, evidence=evidence)


def _verdict(layer: LayerRecord, request: _Request) -> Judged:
    pin = _pin(layer, request.pinned)
    if pin is not None:
        return (*_against_pin(layer, pin), pin)
    if request.requested is not None:
        return _against_graph(layer, request)
    return (*_against_engine(layer, request), request.asked)


# -- pinned by the user ------------------------------------------------------------------------------------------


def _pin(layer: LayerRecord, pinned: Mapping[str, Precision]) -> Precision | None:
    if not pinned:
        return None
    for name in (layer.name, *layer.onnx_nodes):
        if name in pinned:
            return pinned[name]
    for pattern, precision in pinned.items():
        if "*" in pattern and len(pattern) < 500 and fnmatch.fnmatchcase(layer.name, pattern.replace("[", "[[]")):
            return precision
    return None


def _against_pin(layer: LayerRecord, pin: Precision) -> tuple[LayerVerdict, str]:
    built = layer.compute
    if built is None:
        return _unjudged(layer, pin)
    if built is pin or (pin is Precision.FP32 and built is Precision.TF32):
        return LayerVerdict.EXPECTED, f"pinned to {_upper(pin)}, and built so"
    if built.rank < pin.rank:
        return LayerVerdict.DEMOTED, f"pinned to {_upper(pin)}, built in {_upper(built)}"
    return LayerVerdict.FALLBACK, f"pinned to {_upper(pin)}, built in {_upper(built)}"


# -- strongly typed: the graph asks per node ---------------------------------------------------------------------


def _against_graph(layer: LayerRecord, request: _Request) -> Judged:
    requested = request.requested or {}
    nodes = layer.onnx_nodes
    matrix = is_matrix_layer(layer)
    if not matrix:
        # The bias and the requantisation of a convolution carry its name too: they are not the convolution.
        nodes = tuple(node for node in nodes if node not in request.claimed)
    known = [node for node in nodes if node in requested]
    if matrix:
        known = [node for node in known if is_matrix_node(node, request.op_types)] or known
    wants = {requested[node] for node in known}
    built = layer.compute
    if not wants:
        if built is not None and built is request.asked:
            return LayerVerdict.AS_ASKED, "", request.asked
        if only_moves(layer):
            return LayerVerdict.EXPECTED, _MOVES, request.asked
        if _requantises(layer, request):
            return LayerVerdict.EXPECTED, "scales and requantises between quantised layers", request.asked
        return LayerVerdict.UNKNOWN, "carries no node of the graph: what was asked of it cannot be looked up", None
    if len(wants) > 1:
        return _several(layer, wants, request)
    want = next(iter(wants))
    if built is None:
        if _requantises(layer, request) and _wide(layer) == {want}:
            return (
                LayerVerdict.EXPECTED,
                f"computes in {_upper(want)} between quantised layers, as the graph asks",
                want,
            )
        if only_moves(layer):
            return LayerVerdict.EXPECTED, _MOVES, want
        if _only_border_is_wide(layer, request):
            return LayerVerdict.EXPECTED, "converts at the network's FP32 border", want
        return (*_unjudged(layer, want), want)
    if built is want or (want is Precision.FP32 and built is Precision.TF32):
        return (*_granted(want, request.asked), want)
    by_border = layer.evidence is EvidenceSource.TENSORS and not matrix
    if built.rank > want.rank:
        if by_border and only_moves(layer):
            return LayerVerdict.EXPECTED, _MOVES, want
        if by_border and want not in QUANTISED and _requantises(layer, request):
            return LayerVerdict.EXPECTED, "its FP32 border belongs to the INT8 kernels beside it: requantisation", want
        if by_border and between_casts(layer):
            return _granted(want, request.asked)[0], _BETWEEN, want
        if by_border and has_cast(layer.name):
            return (
                LayerVerdict.POSSIBLE,
                f"{_upper(built)}{_CASTS_INSIDE}",
                want,
            )
        return LayerVerdict.FALLBACK, f"the graph asks {_upper(want)}, built in {_upper(built)}", want
    if by_border and built in QUANTISED:
        # The pattern DequantizeLinear, node, QuantizeLinear is itself the request for a quantised node.
        verdict = LayerVerdict.AS_ASKED if built is request.asked else LayerVerdict.EXPECTED
        return verdict, f"{_upper(built)} like its neighbours: Q/DQ moves across it", want
    if by_border and between_casts(layer):
        return _granted(want, request.asked)[0], _BETWEEN, want
    if by_border and has_cast(layer.name):
        return (
            LayerVerdict.UNKNOWN,
            f"the graph asks {_upper(want)}; {_upper(built)} at its borders with casts inside, which may keep it",
            want,
        )
    return (
        LayerVerdict.DEMOTED,
        f"the graph asks {_upper(want)}, built in {_upper(built)}: the casts around it were folded",
        want,
    )


def _several(layer: LayerRecord, wants: set[Precision], request: _Request) -> Judged:
    highest = max(wants, key=lambda p: p.rank)
    words = "/".join(_upper(p) for p in sorted(wants, key=lambda p: -p.rank))
    built = layer.compute
    if built is None:
        return (*_unjudged(layer, highest), highest)
    if built.rank > highest.rank:
        return LayerVerdict.FALLBACK, f"fuses nodes asked {words}, built in {_upper(built)}", highest
    if built.rank < min(p.rank for p in wants):
        return LayerVerdict.DEMOTED, f"fuses nodes asked {words}, built in {_upper(built)}", highest
    if _requantises(layer, request):
        return LayerVerdict.EXPECTED, f"fuses nodes asked {words} between quantised layers", highest
    return LayerVerdict.UNKNOWN, f"fuses nodes asked {words}: which part runs in which is not shown", highest


def _granted(want: Precision, asked: Precision | None) -> tuple[LayerVerdict, str]:
    if asked is None or want is asked:
        return LayerVerdict.AS_ASKED, ""
    return LayerVerdict.EXPECTED, f"the graph keeps it in {_upper(want)}"


def _wide(layer: LayerRecord) -> set[Precision]:
    return float_types((*layer.inputs, *layer.outputs)) - QUANTISED


def _requantises(layer: LayerRecord, request: _Request) -> bool:
    """A generated kernel that scales the output of one quantised layer into the input of the next."""
    if layer.layer_type not in ("kgen", "runtime_fusion", "runtime_function"):
        return False
    if not float_types((*layer.inputs, *layer.outputs)).isdisjoint(QUANTISED):
        return True
    return any(is_qdq_node(node, request.op_types) for node in layer.onnx_nodes)


# -- one precision for the engine ---------------------------------------------------------------------------------


def _against_engine(layer: LayerRecord, request: _Request) -> tuple[LayerVerdict, str]:
    asked, built = request.asked, layer.compute
    if asked is None:
        return LayerVerdict.UNKNOWN, "nothing says which precision was asked"
    if built is None:
        if layer.kind is LayerKind.COMPUTE and _requantises(layer, request):
            return LayerVerdict.EXPECTED, "scales and requantises between quantised layers"
        if only_moves(layer):
            return LayerVerdict.EXPECTED, _MOVES
        if layer.kind is LayerKind.COMPUTE and _only_border_is_wide(layer, request):
            return LayerVerdict.EXPECTED, "converts at the network's FP32 border"
        return _unjudged(layer, asked)
    if built is asked:
        if built not in _FULL and layer.evidence is EvidenceSource.TENSORS and between_casts(layer):
            return LayerVerdict.POSSIBLE, f"{_upper(built)}{_CASTS_INSIDE}"
        return LayerVerdict.AS_ASKED, ""
    if asked is Precision.FP32 and built is Precision.TF32:
        return LayerVerdict.AS_ASKED, ""
    if built in _FULL and built.rank > asked.rank:
        if only_moves(layer):
            return LayerVerdict.EXPECTED, _MOVES
        if layer.layer_type == "kgen" and _requantises(layer, request):
            return LayerVerdict.EXPECTED, "scales and requantises between quantised layers"
        if not request.whole and _at_border(layer, request.network):
            return LayerVerdict.EXPECTED, "first or last layer, next to an FP32 input or output of the network"
        how = "FP32 storage, TF32 math" if built is Precision.TF32 else f"built in {_upper(built)}"
        return LayerVerdict.FALLBACK, f"{_upper(asked)} asked, {how}"
    if built.rank > asked.rank:
        if is_matrix_layer(layer):
            return LayerVerdict.POSSIBLE, f"{_upper(built)}, and nothing says whether this layer was quantised"
        return LayerVerdict.EXPECTED, f"{_upper(built)}: not a layer that {_upper(asked)} was asked for"
    if built in request.allowed:
        return LayerVerdict.EXPECTED, f"{_upper(built)} was allowed beside {_upper(asked)}"
    return LayerVerdict.DEMOTED, f"{_upper(asked)} asked, built in {_upper(built)}"


def _unjudged(layer: LayerRecord, asked: Precision) -> tuple[LayerVerdict, str]:
    tensors = (*layer.inputs, *layer.outputs)
    types = float_types(tensors)
    if layer.kind is LayerKind.OPAQUE and tensors and all(t.dtype is not None and t.dtype.is_index for t in tensors):
        return LayerVerdict.EXPECTED, "only indices and shapes at its borders"
    words = "/".join(_upper(p) for p in sorted(types, key=lambda p: -p.rank))
    if not types:
        return LayerVerdict.UNKNOWN, "no tensor type, weight type or telling tactic is printed"
    if layer.kind is LayerKind.OPAQUE:
        if asked is Precision.FP32 and types == {Precision.FP32}:
            return LayerVerdict.AS_ASKED, "FP32 at its borders, and nothing lower was asked"
        text = f"I/O {words}, inside unknown"
        if any(p.rank > asked.rank for p in types & _FULL):
            return LayerVerdict.POSSIBLE, text
        return LayerVerdict.UNKNOWN, text
    return LayerVerdict.POSSIBLE, f"mixed I/O {words}"


def _at_border(layer: LayerRecord, network: frozenset[str]) -> bool:
    return any(t.name in network for t in (*layer.inputs, *layer.outputs))


def _only_border_is_wide(layer: LayerRecord, request: _Request) -> bool:
    wide: list[TensorRecord] = [t for t in (*layer.inputs, *layer.outputs) if t.dtype in _FULL]
    return bool(wide) and all(t.name in request.network for t in wide)


def _upper(precision: Precision) -> str:
    return precision.value.upper()


def summarise(layers: Sequence[LayerRecord]) -> LayerSummary:
    """Count verdicts over the layers that do arithmetic (compute and opaque), and the time of those as asked."""
    judged = [layer for layer in layers if layer.kind in ARITHMETIC]
    counts = dict.fromkeys(LayerVerdict, 0)
    for layer in judged:
        counts[layer.verdict] += 1
    shares = [layer.share for layer in judged if layer.verdict is LayerVerdict.AS_ASKED]
    timed = any(layer.share is not None for layer in layers)
    return LayerSummary(
        layers=len(layers),
        compute_layers=len(judged),
        as_asked=counts[LayerVerdict.AS_ASKED],
        fallback=counts[LayerVerdict.FALLBACK],
        demoted=counts[LayerVerdict.DEMOTED],
        possible=counts[LayerVerdict.POSSIBLE],
        expected=counts[LayerVerdict.EXPECTED],
        unknown=counts[LayerVerdict.UNKNOWN],
        copies=sum(layer.kind is LayerKind.COPY for layer in layers),
        time_share_as_asked=sum(share or 0.0 for share in shares) if timed else None,
    )

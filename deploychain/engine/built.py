"""From the build stage's evidence to judged engines: the builder's listing against the network that it was given.

The network that TensorRT parsed says per ONNX node which types it computes in and whether its operands are
dequantised: that is the request. The builder's ``Layers:`` text says what was made of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deploychain.engine.judge import judge_layers, summarise
from deploychain.engine.layertext import network_tensors, parse_layers_text
from deploychain.engine.origin import module_of
from deploychain.errors import ArtifactError
from deploychain.precision import Precision, parse_precision
from deploychain.records import EngineReport, LayerRecord, LayerVerdict

EVIDENCE_SCHEMA = "deploychain.engine-evidence/1"

Planned = Mapping[str, Mapping[str, Any]]  # ONNX node -> its row in the precision plan

# TensorRT layer types that compute nothing of their own: nothing is asked of their nodes.
_NO_ARITHMETIC = frozenset((
    "CONSTANT", "IDENTITY", "CAST", "QUANTIZE", "DEQUANTIZE", "SHAPE", "SHUFFLE", "SLICE", "CONCATENATION", "GATHER",
    "SQUEEZE", "UNSQUEEZE", "PADDING", "SCATTER", "SELECT", "ONE_HOT", "FILL", "ASSERTION", "TRIP_LIMIT", "ITERATOR",
    "LOOP_OUTPUT", "RECURRENCE", "CONDITION", "CONDITIONAL_INPUT", "CONDITIONAL_OUTPUT", "REVERSE_SEQUENCE",
    "NON_ZERO", "NMS",
))  # fmt: skip
_MATRIX = {"CONVOLUTION": "Conv", "DECONVOLUTION": "ConvTranspose", "MATRIX_MULTIPLY": "MatMul", "EINSUM": "Einsum"}
_QDQ = {"QUANTIZE": "QuantizeLinear", "DEQUANTIZE": "DequantizeLinear"}
# Between a DequantizeLinear and its consumer the importer may put these without changing what is asked.
_PASSING = frozenset(["SHUFFLE", "IDENTITY", "CAST", "SQUEEZE", "UNSQUEEZE"])


@dataclass(frozen=True, slots=True)
class Requested:
    """What one parsed network asks for, by ONNX node."""

    precision: Mapping[str, Precision]  # nodes that compute
    quantised: frozenset[str]  # matrix nodes whose operands are all dequantised: asked INT8
    half_quantised: frozenset[str]  # matrix nodes of which only one operand is
    op_types: Mapping[str, str]
    vector_scales: tuple[str, ...] = ()  # quantisers of activations whose scale has shape [1], not ()


def engine_reports(
    evidence: Mapping[str, Any],
    plan: Mapping[str, Any] | None = None,
    modules: Mapping[str, str] | None = None,
) -> tuple[EngineReport, ...]:
    """Judge every engine of an engine-evidence file.

    Args:
        evidence: the JSON that the build stage or the device wrote.
        plan: the precision plan; its reasons explain layers that the graph keeps higher.
        modules: ONNX node -> torch module, from the export report.

    Raises:
        ArtifactError: the evidence has another schema or lacks a key.
    """
    if evidence.get("schema") != EVIDENCE_SCHEMA:
        raise ArtifactError(
            f"the engine evidence has schema {evidence.get('schema')!r}, this version reads {EVIDENCE_SCHEMA!r}",
            remedy="run the build stage again",
        )
    models = (plan or {}).get("models", {})
    try:
        return tuple(_report(row, _planned(models.get(row["name"])), modules or {}) for row in evidence["engines"])
    except (KeyError, TypeError) as error:
        raise ArtifactError(
            f"the engine evidence is damaged: {type(error).__name__} {error}", remedy="run the build stage again"
        ) from None


def _planned(model: Mapping[str, Any] | None) -> Planned:
    return {node["name"]: node for node in (model or {}).get("nodes", ())}


def _report(
    row: Mapping[str, Any], planned: Mapping[str, Mapping[str, Any]], modules: Mapping[str, str]
) -> EngineReport:
    asked = Precision(row["asked"])
    common: dict[str, Any] = {
        "name": row["name"],
        "asked": asked,
        "built": bool(row["built"]),
        "reason": row.get("reason", ""),
        "backend": f"{row.get('backend', '')} {row.get('version', '')}".strip(),
        "compute_capability": row.get("compute_capability", ""),
        "size_bytes": row.get("size_bytes"),
        "build_seconds": row.get("build_seconds"),
    }
    if not row["built"]:
        return EngineReport(**common, problems=(common["reason"],) if common["reason"] else ())
    text = row.get("text", "")
    layers = parse_layers_text(text)
    unread = _listing_problems(text, layers)
    problems = list(unread)
    requested = requested_precisions(row.get("network", ()))
    op_types = {**requested.op_types, **{n: p["op"] for n, p in planned.items() if p.get("op")}}
    problems += _plan_problems(planned, requested)
    problems += [
        f"{node}: only one operand is quantised, so it computes in {requested.precision.get(node, Precision.FP32)}"
        for node in sorted(requested.half_quantised)
    ]
    inputs, outputs = network_tensors(text)
    judged = judge_layers(
        layers,
        asked,
        requested.precision or None,
        quantised=requested.quantised,
        op_types=op_types,
        network_io=(inputs | outputs) or None,
    )
    explained = tuple(_explain(layer, planned, modules) for layer in judged)
    fell_back = any(x.verdict is LayerVerdict.FALLBACK and x.asked is Precision.INT8 for x in explained)
    if fell_back and requested.vector_scales:
        problems.append(
            f"the scale of {', '.join(requested.vector_scales[:3])} has shape [1] instead of being a scalar "
            f"({len(requested.vector_scales)} quantisers): TensorRT then computes the layers behind it in FP32"
        )
    # Without one judged layer there is no summary: a count of zero fallbacks would be read as a pass.
    return EngineReport(
        **common,
        layers=explained,
        summary=summarise(explained) if explained else None,
        problems=tuple(problems),
        complete=not unread,
    )


def _listing_problems(text: str, layers: Sequence[LayerRecord]) -> tuple[str, ...]:
    listed = sum(line.startswith("Name: ") and ", IOMode: " not in line for line in text.split("\n"))
    if not listed:
        return ("the builder printed no layer listing: nothing is known of the built precisions",)
    if listed != len(layers):
        return (f"{listed - len(layers)} of {listed} lines of the layer listing could not be read",)
    return ()


def requested_precisions(network: Sequence[Mapping[str, Any]]) -> Requested:
    """What a parsed, strongly typed network asks for.

    Args:
        network: its layers: name, type (TensorRT's LayerType), onnx_node, inputs and outputs (data types),
            input_tensors and output_tensors (names).
    """
    producer = {tensor: layer for layer in network for tensor in layer.get("output_tensors", ()) if tensor}
    precision: dict[str, Precision] = {}
    op_types: dict[str, str] = {}
    operands: dict[str, list[bool]] = defaultdict(list)
    vectors: list[str] = []
    for layer in network:
        node, kind = layer.get("onnx_node", ""), layer["type"]
        if kind == "QUANTIZE" and layer.get("scale_shape") == [1] and not _constant(layer, producer):
            vectors.append(node or layer["name"])
        if not node:
            continue
        if kind in _MATRIX or kind in _QDQ:
            op_types[node] = {**_MATRIX, **_QDQ}[kind]
        if kind in _NO_ARITHMETIC:
            continue
        types = _floats(layer["inputs"]) or _floats(layer["outputs"])
        if not types:
            continue  # indices and shapes
        highest = max(types, key=lambda p: p.rank)
        known = precision.get(node)
        # One node may become several layers: it is asked for the widest of them.
        precision[node] = highest if known is None or highest.rank > known.rank else known
        if kind in _MATRIX:
            tensors = layer.get("input_tensors", ())[:2]
            operands[node] += [_dequantised(t, producer) for t in tensors] + [False] * (2 - len(tensors))
    quantised = frozenset(node for node, flags in operands.items() if all(flags))
    half = frozenset(node for node, flags in operands.items() if any(flags)) - quantised
    return Requested(precision, quantised, half, op_types, tuple(vectors))


def _constant(layer: Mapping[str, Any], producer: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a quantiser's input is a weight: there a scale of shape [1] is one output channel."""
    made_by = producer.get(layer["input_tensors"][0])
    while made_by is not None and made_by["type"] in _PASSING:
        made_by = producer.get(made_by["input_tensors"][0])
    return made_by is not None and made_by["type"] == "CONSTANT"


def _floats(types: Sequence[str]) -> set[Precision]:
    parsed = (parse_precision(text) for text in types)
    return {p for p in parsed if p is not None and p.is_float}


def _dequantised(tensor: str, producer: Mapping[str, Mapping[str, Any]]) -> bool:
    for _ in range(8):
        layer = producer.get(tensor)
        if layer is None:
            return False
        if layer["type"] == "DEQUANTIZE":
            return True
        if layer["type"] not in _PASSING:
            return False
        tensor = layer["input_tensors"][0]
    return False


def _plan_problems(planned: Planned, requested: Requested) -> list[str]:
    """Nodes whose type in the network that was built is not the one that the plan gave them."""
    problems = []
    for name, node in planned.items():
        wish, found = node.get("precision"), requested.precision.get(name)
        if not wish or found is None or wish == "int8":
            continue
        if name not in requested.quantised and found.value != wish:
            problems.append(f"{name}: the plan says {wish}, the network that was built says {found}")
    return problems


def _explain(layer: LayerRecord, planned: Planned, modules: Mapping[str, str]) -> LayerRecord:
    reason = layer.reason
    if layer.verdict is LayerVerdict.EXPECTED and reason.startswith("the graph keeps it"):
        why = dict.fromkeys(str(planned[n]["reason"]) for n in layer.onnx_nodes if planned.get(n, {}).get("reason"))
        reason = f"{reason}: {'; '.join(why)}" if why else reason
    return replace(layer, reason=reason, module=module_of(layer.onnx_nodes, modules))

"""Proof that FP32 nodes stay FP32: build the converted model and read what the builder made of them.

A strongly typed network is no guarantee. TensorRT-RTX folds the casts around a lone FP32 convolution and builds it in
Half without a warning. So the converted file is built, each guard is looked up in the builder's own layer listing,
and an island that was folded away is widened by its neighbours until it holds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from deploychain.backends import tensorrt_flavour
from deploychain.backends.onnx_graph import sort_topologically
from deploychain.backends.tensorrt_build import BuildRequest, build_engine
from deploychain.engine.built import EVIDENCE_SCHEMA, engine_reports
from deploychain.engine.datatypes import CAST_WORDS, kernel_words
from deploychain.errors import CapabilityError
from deploychain.precision import Precision
from deploychain.records import LayerKind, LayerVerdict


@dataclass(frozen=True, slots=True)
class Proof:
    """What one build said about the guards."""

    built: bool
    reason: str  # why nothing could be proved; empty when it was built
    how: str  # "tensorrt_rtx 1.7.1.116 for compute capability 8.9"
    held: frozenset[str]
    demoted: Mapping[str, str]  # node -> what the builder made of it
    unknown: frozenset[str]  # fused into layers that do not show their inner precision, or not listed


def prove(
    onnx: Path,
    guards: Set[str],
    operators: Mapping[str, str],
    *,
    compute_capability: str = "8.9",
    shapes: Mapping[str, Sequence[int]] | None = None,
    timeout: float = 600.0,
) -> Proof:
    """Build a converted model and judge the named FP32 nodes in the builder's listing.

    Args:
        onnx: the converted file.
        guards: node names that shall compute in FP32.
        operators: node name -> ONNX operator.
        shapes: shape of an example per input (axes that are dynamic get profiles around it).
    """
    try:
        flavour = tensorrt_flavour.choose("auto")
    except CapabilityError as error:
        return Proof(False, error.message, "", frozenset(), {}, frozenset(guards))
    with tempfile.TemporaryDirectory(prefix="deploychain-guards-") as folder:
        work = Path(folder)
        request = BuildRequest(
            flavour,
            onnx.resolve(),
            work / "guards.engine",
            compute_capability=compute_capability if flavour == "tensorrt_rtx" else None,
            examples=shapes or {},
        )
        build = build_engine(request, work, timeout=timeout)
    how = f"{build.flavour} {build.version} for compute capability {build.compute_capability}"
    if not build.built:
        return Proof(False, build.reason, how, frozenset(), {}, frozenset(guards))
    row = {
        "name": "guards",
        "asked": "fp16",
        "built": True,
        "network": [dict(layer) for layer in build.network],
        "text": build.text,
    }
    report = engine_reports({"schema": EVIDENCE_SCHEMA, "engines": [row]})[0]
    held: set[str] = set()
    demoted: dict[str, str] = {}
    for layer in report.layers:
        if layer.kind is LayerKind.HELPER:
            continue
        for node in guards & set(layer.onnx_nodes):
            if layer.verdict is LayerVerdict.DEMOTED:
                demoted[node] = f"layer {layer.name}: {layer.reason}"
            elif layer.compute in (Precision.FP32, Precision.TF32) or _between_casts(
                layer.name, operators.get(node, "")
            ):
                held.add(node)
    return Proof(True, "", how, frozenset(held - demoted.keys()), demoted, frozenset(guards - held - demoted.keys()))


def _between_casts(kernel: str, operator: str) -> bool:
    """A generated kernel spells its steps: ``CorrCastExpCast`` computes Exp between two casts, that is in FP32."""
    words = kernel_words(kernel)
    casts = [i for i, word in enumerate(words) if word in CAST_WORDS]
    places = [i for i, word in enumerate(words) if len(word) > 2 and operator.startswith(word)]
    return len(casts) > 1 and bool(places) and all(casts[0] < i < casts[-1] for i in places)


def anchor(model: ModelProto, nodes: Sequence[str]) -> tuple[str, ...]:
    """Put a Clip to the range of FP32 behind each named node of a converted model; returns the new nodes' names."""
    graph = model.graph
    limit = float(np.finfo(np.float32).max)
    weights = {t.name for t in graph.initializer}
    for name, value in (("deploychain.guard.min", -limit), ("deploychain.guard.max", limit)):
        if name not in weights:
            graph.initializer.append(numpy_helper.from_array(np.array(value, np.float32), name))
    made = []
    for node in [n for n in graph.node if n.name in set(nodes)]:
        output = node.output[0]
        inner = f"{output}//guarded"
        node.output[0] = inner
        name = f"{node.name}/guard"
        bounds = ["deploychain.guard.min", "deploychain.guard.max"]
        graph.node.append(helper.make_node("Clip", [inner, *bounds], [output], name=name))
        made.append(name)
    sort_topologically(graph)
    return tuple(made)

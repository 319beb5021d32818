"""Why a layer was probably not built as asked, and what to do about it.

Causes are probable, never certain: TensorRT does not say why it chose a kernel. Each rule rests on something in the
evidence (a warning, the layer type, its neighbours, the GPU), and the general one comes last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from deploychain.engine.classify import QUANTISED, is_matrix_layer
from deploychain.engine.model import Run
from deploychain.engine.options import version_key
from deploychain.precision import Precision
from deploychain.records import LayerKind, LayerRecord, LayerVerdict

_NORM = re.compile(r"softmax|norm|reducemean|exp\b|pow\b", re.I)
# Compute capabilities with fast FP16 arithmetic: 5.3, 6.0, 6.2 and everything from 7.0 on (CUDA C++ Programming Guide,
# "Arithmetic Instructions"); fast INT8 (DP4A or tensor cores): 6.1 and everything from 7.2 on.
_SLOW_FP16 = re.compile(r"^(?:[1-4]\.|5\.[02]|6\.1)")


@dataclass(frozen=True, slots=True)
class Advice:
    """A probable cause and the remedy, one sentence each."""

    cause: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Context:
    """What the rules need to know about the engine beside the layer."""

    asked: Precision | None
    whole: bool  # no arithmetic layer runs as asked
    run: Run | None
    strongly_typed: bool
    refused: frozenset[str]  # layers named by a "obeys the requested constraints" warning
    layers: tuple[LayerRecord, ...]


def context_of(
    layers: tuple[LayerRecord, ...], asked: Precision | None, run: Run | None, strongly_typed: bool
) -> Context:
    """Collect the context once for all layers."""
    judged = [layer for layer in layers if layer.kind in (LayerKind.COMPUTE, LayerKind.OPAQUE)]
    fallbacks = sum(layer.verdict is LayerVerdict.FALLBACK for layer in judged)
    refused = (
        frozenset(w.layer for w in run.warnings if w.kind == "constraint-not-obeyed" and w.layer)
        if run
        else frozenset()
    )
    return Context(asked, bool(judged) and fallbacks == len(judged), run, strongly_typed, refused, layers)


def advise(layer: LayerRecord, context: Context) -> Advice:
    """The most probable cause for a layer that is a fallback, a possible one, or demoted."""
    asked = layer.asked or context.asked
    word = asked.value.upper() if asked else "the asked precision"
    if layer.verdict is LayerVerdict.DEMOTED and layer.reason.startswith("pinned"):
        return Advice(
            "--layerPrecisions is a wish with prefer, and without --precisionConstraints has no effect",
            "rebuild with --precisionConstraints=obey",
        )
    if layer.verdict is LayerVerdict.DEMOTED and not layer.reason.startswith(("the graph", "fuses")):
        return Advice("a lower precision than the asked one was allowed", "check the build options, and --asked")
    if layer.verdict is LayerVerdict.DEMOTED:
        return Advice(
            "the casts around the FP32 node were folded into it: a lone guard between two casts does not hold",
            "put another FP32 operation into the island or widen it by a node, rebuild, and check this line again",
        )
    if layer.kind is LayerKind.OPAQUE:
        return Advice(
            "a subgraph that TensorRT compiled as one: only its borders are listed",
            "list its kernels with --profilingVerbosity=detailed --exportLayerInfo (10.x), or compare outputs",
        )
    if layer.name in context.refused or any(node in context.refused for node in layer.onnx_nodes):
        return Advice(
            "no implementation obeys the requested precision (TensorRT warned about this layer)",
            "use --precisionConstraints=obey to make it an error, or change the layer",
        )
    if context.whole:
        return _whole(context, word)
    if layer.layer_type.startswith("Plugin") or "PluginType" in layer.extra:
        return Advice(
            "the plugin offers no such format", f"let supportsFormatCombination() accept {word}, or replace the plugin"
        )
    if asked in QUANTISED:
        return _quantised(layer, context)
    if layer.compute is Precision.TF32:
        return Advice(
            f"the FP32 kernel with TF32 math was measured faster, or no {word} kernel fits this shape",
            _force(context, word),
        )
    if _NORM.search(layer.layer_type) or any(_NORM.search(node) for node in layer.onnx_nodes):
        return Advice(
            "softmax and normalisation are often kept in FP32 for their range",
            "leave it, unless it costs time; then " + _force(context, word),
        )
    if layer.verdict is LayerVerdict.POSSIBLE:
        return Advice(
            "it reads one type and writes another: where it converts is not listed", "compare its output with FP32"
        )
    if is_matrix_layer(layer):
        return Advice(
            f"no {word} kernel for this shape, or the FP32 one was measured faster (channels not a multiple of 8?)",
            _force(context, word),
        )
    return Advice("cheap enough in FP32 that a copy to " + word + " would cost more", _force(context, word))


def _whole(context: Context, word: str) -> Advice:
    capability = context.run.compute_capability if context.run is not None else None
    if capability and word == "FP16" and _SLOW_FP16.match(capability):
        return Advice(f"compute capability {capability} has no fast FP16", "use FP32, or a GPU of 7.0 or later")
    if context.run is not None and any(w.kind in ("no-fast-fp16", "no-fast-int8") for w in context.run.warnings):
        return Advice(f"the GPU has no fast {word} (TensorRT warned)", "use FP32, or another GPU")
    return Advice(
        f"no layer runs in {word}: the GPU has no fast {word}, the flag did not reach the builder, "
        "or this is another engine",
        "check the compute capability (7.0 or later), the build command and that the file is of this engine",
    )


def _quantised(layer: LayerRecord, context: Context) -> Advice:
    if "deconv" in layer.layer_type.lower() or any("ConvTranspose" in node for node in layer.onnx_nodes):
        return Advice(
            "TensorRT-RTX has no INT8 transposed convolution", "leave it unquantised, or use resize and convolution"
        )
    if is_matrix_layer(layer):
        return Advice(
            "its Q/DQ pairs were not fused: an activation scale of shape [1] instead of 0-d, only one input quantised, "
            "or no INT8 kernel",
            "export 0-d activation scales, quantise input and weights, and rebuild",
        )
    allowed = context.run.allowed if context.run is not None else frozenset()
    more = "" if Precision.FP16 in allowed else ", or allow FP16 beside INT8"
    return Advice("its input is dequantised before it", f"quantise its input and output (Q/DQ around it){more}")


def _force(context: Context, word: str) -> str:
    version = context.run.tensorrt if context.run is not None else None
    if context.strongly_typed or version_key(version) >= (11,):
        return f"change the node's type in the ONNX graph to {word}"
    return f"pin it (--layerPrecisions=NAME:{word.lower()} --precisionConstraints=obey), or type the ONNX graph"

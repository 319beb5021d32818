"""The rules of TensorRT's Q/DQ contract, one function each; `onnx_qdq` runs them over a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from onnx import NodeProto, TensorProto, numpy_helper

from deploychain.backends import onnx_graph
from deploychain.backends.onnx_qdq_lookup import Lookup, QdqFinding, serves_weight

FP16_SCALES_FROM = 19  # QuantizeLinear takes float16 from this opset on

_CONVS = ("Conv", "ConvTranspose")
WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")
# Operators without an INT8 kernel: they compute in floating point whatever surrounds them.
_FLOAT_ONLY = (
    *("LayerNormalization", "InstanceNormalization", "GroupNormalization", "Softmax", "LogSoftmax", "GridSample"),
    *("Sigmoid", "Tanh", "Erf", "Exp", "Log", "Sqrt", "Pow", "Reciprocal", "Sin", "Cos", "Softplus", "Elu", "Gelu"),
    *("Mish", "TopK", "NonMaxSuppression", "CumSum", "LSTM", "GRU", "RNN"),
)


Rule = Callable[[Lookup, NodeProto], Iterator[QdqFinding]]


def _scale(graph: Lookup, node: NodeProto) -> Iterator[QdqFinding]:
    """Scales: constant, positive, FP32 below opset 19, 0-d for activations."""
    scale = graph.array(node.input[1])
    if scale is None:
        yield graph.finding(
            node,
            "scale-not-constant",
            "error",
            "the scale is computed at run time; TensorRT needs a constant",
            "calibrate: dynamic quantisation has no TensorRT form",
        )
        return
    if scale.dtype == np.float16 and graph.opset < FP16_SCALES_FROM:
        yield graph.finding(
            node,
            "half-scale",
            "error",
            f"an FP16 scale at opset {graph.opset}: onnx.checker and onnxruntime refuse the file "
            "(TensorRT-RTX builds it in INT8)",
            f"keep Q/DQ in FP32 with casts around, or raise the opset to {FP16_SCALES_FROM}",
        )
    values = scale.astype(np.float64)
    if not (np.isfinite(values).all() and (values > 0).all()):
        yield graph.finding(
            node,
            "scale-value",
            "error",
            "a scale is zero, negative or not finite",
            "calibrate again; give dead channels a small positive scale",
        )
    if scale.ndim == 0 or serves_weight(graph, node):
        return
    if scale.size == 1:
        yield graph.finding(
            node,
            "scale-shape",
            "error",
            f"the scale of an activation has shape {list(scale.shape)} instead of []: TensorRT-RTX builds the "
            "convolutions that it feeds in FP32, without a warning",
            "store the scale as a 0-d tensor",
            fixable=True,
        )
    else:
        yield graph.finding(
            node,
            "activation-per-channel",
            "error",
            f"an activation has {scale.size} scales; TensorRT takes one per tensor",
            "quantise activations per tensor",
        )


def _zero_point(graph: Lookup, node: NodeProto) -> Iterator[QdqFinding]:
    if len(node.input) < 3 or not node.input[2]:
        if node.op_type == "QuantizeLinear":
            yield graph.finding(
                node,
                "uint8",
                "warning",
                "without a zero point the ONNX type is UINT8, while TensorRT computes in INT8",
                "give an INT8 zero point of 0",
            )
        return
    zero = graph.constant(node.input[2])
    if zero is None:
        return
    if zero.data_type == TensorProto.INT32 and node.op_type == "DequantizeLinear":
        return  # a quantised bias has its own finding
    if np.any(numpy_helper.to_array(zero) != 0):
        yield graph.finding(
            node,
            "zero-point",
            "error",
            'a zero point is not 0: TensorRT\'s parser refuses it ("Non-zero zero point is not supported")',
            "quantise symmetrically",
        )
    elif zero.data_type == TensorProto.UINT8:
        yield graph.finding(
            node,
            "uint8",
            "warning",
            "UINT8 with zero point 0: TensorRT-RTX builds INT8, whose largest value is 127, not 255",
            "quantise symmetrically to INT8",
        )


def _pairing(graph: Lookup, node: NodeProto) -> Iterator[QdqFinding]:
    """Q is read by DQ, DQ reads Q or a constant, and both have the same scale."""
    if node.op_type == "QuantizeLinear":
        readers = graph.readers.get(node.output[0], [])
        alien = sorted({n.op_type for n, _ in readers if n.op_type not in ("DequantizeLinear", "Clip")})
        if not readers or alien or node.output[0] in graph.outputs:
            reads = ", ".join(alien) or ("the graph's output" if node.output[0] in graph.outputs else "nothing")
            yield graph.finding(
                node,
                "dangling",
                "warning",
                f"its INT8 result is read by {reads} instead of DequantizeLinear: no layer computes in INT8 from it",
                "end every QuantizeLinear in a DequantizeLinear with the same scale",
            )
        return
    source = graph.made.get(node.input[0])
    if source is None or source.op_type in ("Constant", "Identity"):
        if node.input[0] not in graph.weights and graph.constant(node.input[0]) is None:
            yield graph.finding(
                node,
                "dangling",
                "note",
                "it dequantises a network input: whoever runs the engine has to quantise",
                "give the network FP32 inputs and quantise inside, unless this is meant",
            )
        return
    if source.op_type == "Clip":
        yield graph.finding(
            node,
            "clipped-constant",
            "error",
            "a Clip stands between the quantised tensor and DequantizeLinear: TensorRT's parser refuses it",
            "remove the Clip: INT8 values are in range already",
            fixable=graph.constant(source.input[0]) is not None,
        )
        return
    if source.op_type != "QuantizeLinear":
        yield graph.finding(
            node,
            "dangling",
            "error",
            f"it dequantises the result of {source.op_type}, not of QuantizeLinear",
            "put QuantizeLinear right before DequantizeLinear",
        )
        return
    mine, other = graph.array(node.input[1]), graph.array(source.input[1])
    if mine is not None and other is not None and not np.array_equal(mine.ravel(), other.ravel()):
        yield graph.finding(
            node,
            "pair-scales",
            "warning",
            "QuantizeLinear and DequantizeLinear have different scales: all values are multiplied by their ratio",
            "use one scale for the pair",
        )


def _weighted(graph: Lookup, node: NodeProto) -> Iterator[QdqFinding]:
    """Layers with weights: both sides quantised or none, the right channel axis, no quantised bias."""
    sides = [graph.dequantizer(name) for name in node.input[:2]]
    if len(node.input) > 2 and (bias := graph.dequantizer(node.input[2])) is not None:
        yield graph.finding(
            bias,
            "bias",
            "error",
            f"the bias of {node.name or node.op_type} is quantised: TensorRT's parser refuses INT32 "
            "(DequantizeLinear: input has type Int32)",
            "keep the bias in FP32",
            fixable=graph.array(bias.input[0]) is not None,
        )
    if (sides[0] is None) != (sides[1] is None):
        has, lacks = ("weight", "input") if sides[0] is None else ("input", "weight")
        if node.op_type == "MatMul" and graph.constant(node.input[1]) is None and sides[1] is None:
            has, lacks = "first operand", "second operand"
        yield graph.finding(
            node,
            "one-sided",
            "error",
            f"only its {has} is quantised, its {lacks} is not: TensorRT computes it in FP32",
            f"quantise its {lacks} too, or neither",
        )
        return
    if sides[1] is None:
        return
    if node.op_type == "ConvTranspose":
        yield graph.finding(
            node,
            "conv-transpose",
            "note",
            "TensorRT-RTX builds a quantised ConvTranspose in FP32",
            "exclude it from quantisation where RTX is the target, or use resize and convolution",
        )
    yield from _axis(graph, node, sides[1])


def _axis(graph: Lookup, node: NodeProto, dequantizer: NodeProto) -> Iterator[QdqFinding]:
    scale = graph.array(dequantizer.input[1])
    if scale is None or scale.size <= 1:
        return
    rank = 2 if node.op_type in ("Gemm", "MatMul") else 3
    axis = next((a.i for a in dequantizer.attribute if a.name == "axis"), 1)
    axis += rank if axis < 0 else 0
    direct = graph.made.get(node.input[1])
    wanted = _output_axis(node)
    if direct is not None and direct.op_type == "Transpose":
        wanted = 1 - wanted
    elif direct is not dequantizer:
        return  # reshaped: not judged
    if axis != wanted:
        yield graph.finding(
            dequantizer,
            "channel-axis",
            "error",
            f"the weight's scales run along axis {axis}; the output channels of {node.op_type} are axis {wanted}",
            f"quantise the weight per output channel (axis {wanted}) or with one scale",
        )


def _output_axis(node: NodeProto) -> int:
    if node.op_type == "Conv":
        return 0
    if node.op_type == "Gemm" and any(a.name == "transB" and a.i for a in node.attribute):
        return 0
    return 1


def _skip(graph: Lookup, node: NodeProto) -> Iterator[QdqFinding]:
    """A residual addition after a quantised layer: its other operand is quantised.

    After a Gemm or MatMul only where an INT8 copy of that operand exists: a pre-norm transformer has none.
    """
    if any(graph.constant(name) is not None or graph.dequantizer(name) is not None for name in node.input):
        return
    sources = [graph.made.get(name) for name in node.input]
    quantised = [s is not None and s.op_type in WEIGHTED and graph.dequantizer(s.input[0]) is not None for s in sources]
    if not any(quantised):
        return
    skip = 0 if quantised == [False, True] else 1
    made = sources[1 - skip]
    read_as_int8 = any(n.op_type == "QuantizeLinear" for n, _ in graph.readers[node.input[skip]])
    if (made is not None and made.op_type in _CONVS) or read_as_int8:
        yield graph.finding(
            node,
            "skip",
            "warning",
            "the skip input of this residual addition is not quantised: a floating-point copy of it is kept and moved",
            f"quantise {node.input[skip]!r} before the addition",
        )


def _concat(graph: Lookup, node: NodeProto) -> Iterator[QdqFinding]:
    sources = [graph.dequantizer(name) for name in node.input if graph.constant(name) is None]
    quantised = [s for s in sources if s is not None]
    if not quantised or graph.one_scale(sources):
        return
    if len(quantised) < len(sources):
        detail = f"{len(quantised)} of its {len(sources)} inputs are quantised: it is built in floating point"
    else:
        detail = "its inputs have different scales: TensorRT dequantises and quantises again around it"
    yield graph.finding(node, "concat", "warning", detail, "give all inputs of a concatenation one scale, or none")


def _float_only(graph: Lookup, node: NodeProto) -> Iterator[QdqFinding]:
    if any(graph.dequantizer(name) is not None for name in node.input[:1]):
        yield graph.finding(
            node,
            "not-quantisable",
            "warning",
            f"{node.op_type} has no INT8 kernel: quantising its input costs accuracy and gains nothing",
            "leave its input unquantised",
        )


def _integer_format(graph: Lookup, node: NodeProto) -> Iterator[QdqFinding]:
    yield graph.finding(
        node,
        "integer-format",
        "error",
        f"{node.op_type} is the integer-operator form, which TensorRT does not parse",
        "write the model in Q/DQ form (onnxruntime: QuantFormat.QDQ); dynamic quantisation has none",
    )


def _as_input(graph: Lookup, node: NodeProto) -> Iterator[QdqFinding]:
    for name in node.input:
        if name in graph.weights and name in graph.inputs:
            yield graph.finding(
                node,
                "weight-as-input",
                "note",
                f"{name!r} is also an input of the graph: a caller could change it, and tools may not see a constant",
                "export with keep_initializers_as_inputs=False",
                fixable=True,
            )


RULES: dict[str, tuple[Rule, ...]] = {
    "QuantizeLinear": (_as_input, _scale, _zero_point, _pairing),
    "DequantizeLinear": (_as_input, _scale, _zero_point, _pairing),
    "Conv": (_weighted,),
    "ConvTranspose": (_weighted,),
    "Gemm": (_weighted,),
    "MatMul": (_weighted,),
    "Add": (_skip,),
    "Concat": (_concat,),
    **dict.fromkeys(_FLOAT_ONLY, (_float_only,)),
    **dict.fromkeys(onnx_graph.INTEGER_FORMAT, (_integer_format,)),
}

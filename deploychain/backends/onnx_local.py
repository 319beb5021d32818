"""What low precision does to each node alone, all nodes in one pass: the local signal-to-noise ratio.

Beside every node a shadow of it is put into the graph, fed with the *reference* inputs and weights rounded to the low
precision; its result is rounded and compared with the node's own inside the graph, so that two numbers per node
come out (energy of the signal, energy of the error) whatever the size of the tensors. The cost is about three times
one run of the model. It shows where a node itself cannot work on rounded values (cancellation, overflow inside, a
normalisation of a nearly constant input); errors that only matter downstream show in the search.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
from onnx import ModelProto, NodeProto, TensorProto, helper

from deploychain.backends.onnx_graph import FLOAT, LOW_TYPES, open_model
from deploychain.backends.ort import fitted_inputs, in_batches, session_options
from deploychain.errors import StageError
from deploychain.numerics.nodes import DATA_MOVEMENT, NodeInfo

_RANDOM = frozenset(
    ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial")
)
_SKIPPED = _RANDOM | {"Dropout", "QuantizeLinear", "DequantizeLinear", "Cast", "DynamicQuantizeLinear"}


def local_snr(
    model: ModelProto,
    infos: Sequence[NodeInfo],
    inputs: Mapping[str, npt.NDArray[np.generic]],
    *,
    low: str = "fp16",
    batch_size: int = 32,
    limit: int = 32,
) -> dict[str, float]:
    """Local SNR in dB of every float node that could compute in the low precision.

    Args:
        model: a prepared FP32 model.
        infos: facts of its nodes.
        inputs: calibration data.
        limit: samples used; the ratio needs far fewer than a range.

    Returns:
        Node name -> dB; -inf where the low precision makes it non-finite, inf where nothing changes. For a
        DequantizeLinear behind a QuantizeLinear: the signal over the error of the two together.

    Raises:
        StageError: onnxruntime refuses the data.
    """
    judged = [i for i in infos if _judged(i)]
    if not judged and not any(i.op == "DequantizeLinear" for i in infos):
        return {}
    extended, measured = _shadowed(model, judged, LOW_TYPES[low])
    options = session_options()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = open_model(extended, options)
    names = [n for pair in measured.values() for n in pair]
    signal, error = dict.fromkeys(measured, 0.0), dict.fromkeys(measured, 0.0)
    cut = {k: (v[:limit] if np.ndim(v) else v) for k, v in inputs.items()}
    for feed, _, _ in in_batches(session, fitted_inputs(session, cut), batch_size):
        try:
            values = session.run(names, feed)
        except Exception as problem:
            raise StageError(
                f"onnxruntime failed on the calibration data: {' '.join(str(problem).split())[:300]}"
            ) from None
        for index, node in enumerate(measured):
            signal[node] += float(values[2 * index])
            error[node] += float(values[2 * index + 1])
    return {node: _ratio_db(signal[node], error[node]) for node in measured}


def _judged(info: NodeInfo) -> bool:
    return bool(info.float_outputs) and not info.not_lowerable and info.op not in DATA_MOVEMENT | _SKIPPED


def _ratio_db(signal: float, error: float) -> float:
    if not math.isfinite(signal):
        return math.nan  # FP32 itself is not finite there: nothing can be said
    if not math.isfinite(error):
        return -math.inf
    if error == 0.0:
        return math.inf
    return 10 * math.log10(signal / error) if signal > 0 else -math.inf


def _shadowed(
    model: ModelProto, judged: Sequence[NodeInfo], low_type: int
) -> tuple[ModelProto, dict[str, tuple[str, str]]]:
    made = ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    by_name = {n.name: n for n in graph.node}
    weights = {t.name for t in graph.initializer if t.data_type == FLOAT}
    rounded: dict[str, str] = {}
    extra: list[NodeProto] = []
    measured: dict[str, tuple[str, str]] = {}

    def round_once(name: str) -> str:
        if name not in rounded:
            rounded[name] = f"{name}//low"
            extra.append(helper.make_node("Cast", [name], [f"{name}//half"], to=low_type))
            extra.append(helper.make_node("Cast", [f"{name}//half"], [rounded[name]], to=FLOAT))
        return rounded[name]

    def compare(value: str, reference: str) -> tuple[str, str]:
        off, signal, noise = (f"{value}//{s}" for s in ("error", "signal", "noise"))
        extra.append(helper.make_node("Sub", [value, reference], [off]))
        extra.append(helper.make_node("ReduceSumSquare", [reference], [signal], keepdims=0))
        extra.append(helper.make_node("ReduceSumSquare", [off], [noise], keepdims=0))
        return signal, noise

    for info in judged:
        node = by_name[info.name]
        shadow = NodeProto()
        shadow.CopyFrom(node)
        shadow.name = f"{node.name}//shadow"
        floats = set(info.float_inputs) | weights
        for index, name in enumerate(node.input):
            if name in floats and not _must_stay(node, index):
                shadow.input[index] = round_once(name)
        for index, name in enumerate(node.output):
            if name:
                shadow.output[index] = f"{name}//shadow"
        extra.append(shadow)
        result = info.float_outputs[0]
        half, again = (f"{result}//shadow//{s}" for s in ("half", "low"))
        extra.append(helper.make_node("Cast", [f"{result}//shadow"], [half], to=low_type))
        extra.append(helper.make_node("Cast", [half], [again], to=FLOAT))
        measured[info.name] = compare(again, result)
    producers = {out: node for node in graph.node for out in node.output if out}
    for node in graph.node:
        quantiser = producers.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        if quantiser is not None and quantiser.op_type == "QuantizeLinear":
            measured[node.name] = compare(node.output[0], quantiser.input[0])
    graph.node.extend(extra)
    del graph.output[:]
    graph.output.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, []) for p in measured.values() for n in p)
    del graph.value_info[:]
    return made, measured


def _must_stay(node: NodeProto, index: int) -> bool:
    """Inputs that an operator takes in FP32 only, whatever its data are (Resize scales)."""
    if node.op_type == "Resize":
        return index > 0
    return False

"""Chosen nodes of an FP32 model in emulated low precision: what a search and a sensitivity table evaluate.

A node in low precision reads rounded inputs and weights, computes in FP32 (as tensor cores accumulate) and rounds its
result once. That is what `ort_emulation.emulate_fp16` makes of the converted file; here the choice is made on the FP32
graph, so that one evaluation needs no conversion. For a Q/DQ model the choice is which nodes keep their quantisers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from deploychain.backends.onnx_graph import (
    FLOAT,
    LOW_TYPES,
    drop_unused_initializers,
    open_model,
    sort_topologically,
)
from deploychain.backends.ort import run_batches
from deploychain.errors import StageError
from deploychain.numerics.nodes import NodeInfo

Arrays = dict[str, npt.NDArray[Any]]


class Emulator:
    """Runs a prepared model over fixed data with any choice of low-precision nodes."""

    def __init__(
        self,
        model: ModelProto,
        infos: Sequence[NodeInfo],
        inputs: Mapping[str, npt.NDArray[Any]],
        *,
        low: str = "fp16",
        batch_size: int = 32,
    ) -> None:
        self.runs = 0
        self._model = model
        self._infos = {i.name: i for i in infos}
        self._inputs = inputs
        self._low = low
        self._batch_size = batch_size
        self._one_batch: Arrays | None = None

    def outputs(self, low_nodes: Set[str], dequantised: Set[str] = frozenset()) -> Arrays:
        """Outputs with exactly ``low_nodes`` in low precision.

        Args:
            low_nodes: names; nodes that cannot be converted are left as they are.
            dequantised: nodes of a Q/DQ model whose inputs skip their quantisers.
        """
        made = ModelProto()
        made.CopyFrom(self._model)
        if dequantised:
            skip_quantisers(made, dequantised)
        lower(made, self._infos, low_nodes, self._low)
        self.runs += 1
        session = open_model(made)
        if self._one_batch is not None:
            return run_batches(session, self._one_batch, self._batch_size)
        try:
            return run_batches(session, self._inputs, self._batch_size)
        except StageError as error:
            if "joined" not in error.message and "rows for" not in error.message:
                raise
        # An output has no sample axis to join batches on: one batch then stands for the data.
        self._one_batch = {n: (a[: self._batch_size] if np.ndim(a) else a) for n, a in self._inputs.items()}
        return run_batches(session, self._one_batch, self._batch_size)


def lower(model: ModelProto, infos: Mapping[str, NodeInfo], low_nodes: Set[str], low: str) -> None:
    """Rewrite a model in place so that the named nodes compute in emulated low precision."""
    graph = model.graph
    weights = {t.name: t for t in graph.initializer if t.data_type == FLOAT}
    producers = {out: node.name for node in graph.node for out in node.output if out}
    outputs = {v.name for v in graph.output}
    names: dict[str, str] = {}
    nodes: list[NodeProto] = []
    pending: list[NodeProto] = []
    added: list[TensorProto] = []

    def rounded(name: str) -> str:
        """The rounded twin of a tensor."""
        if name in names:
            return names[name]
        names[name] = twin = f"{name}//low"
        if name in weights:
            added.append(numpy_helper.from_array(round_array(numpy_helper.to_array(weights[name]), low), twin))
        else:
            pending.extend(_round_nodes(name, twin, low))
        return twin

    def is_low(node: str) -> bool:
        info = infos.get(node)
        return node in low_nodes and info is not None and info.is_float and not info.not_lowerable

    for node in graph.node:
        copy = NodeProto()
        copy.CopyFrom(node)
        after: list[NodeProto] = []
        if is_low(node.name):
            info = infos[node.name]
            for index, name in enumerate(node.input):
                if node.op_type == "Resize" and index > 0:
                    continue  # scales stay FP32
                if name in weights or (name in info.float_inputs and not is_low(producers.get(name, ""))):
                    copy.input[index] = rounded(name)
            for index, name in enumerate(node.output):
                if name in info.float_outputs:
                    copy.output[index] = f"{name}//exact"
                    after.extend(_round_nodes(f"{name}//exact", name, low))
        nodes.extend([*pending, copy, *after])
        pending.clear()
    assert outputs <= {out for n in nodes for out in n.output} | set(weights) | {v.name for v in graph.input}
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.extend(added)
    drop_unused_initializers(graph)
    del graph.value_info[:]


def _round_nodes(source: str, target: str, low: str) -> tuple[NodeProto, NodeProto]:
    half = f"{target}//half"
    return (
        helper.make_node("Cast", [source], [half], name=f"{half}/Cast", to=LOW_TYPES[low]),
        helper.make_node("Cast", [half], [target], name=f"{target}/Cast", to=FLOAT),
    )


def round_array(values: npt.NDArray[Any], low: str) -> npt.NDArray[np.float32]:
    """Weights as AutoCast converts them: nearest even; beyond the largest value clamped, tiny ones kept non-zero."""
    wide = np.asarray(values, np.float32)
    if low == "fp16":
        limits = np.finfo(np.float16)
        clamped = np.clip(wide, -float(limits.max), float(limits.max))
        tiny = (clamped != 0) & (np.abs(clamped) < float(limits.smallest_subnormal))
        return np.where(tiny, np.float32(limits.smallest_subnormal), clamped).astype(np.float16).astype(np.float32)
    import ml_dtypes

    return wide.astype(ml_dtypes.bfloat16).astype(np.float32)


def skip_quantisers(model: ModelProto, names: Set[str]) -> int:
    """Feed the named nodes with what their quantisers were fed with; quantisers that nobody reads go.

    A weight that is stored as INT8 is dequantised for good. A quantiser whose range starts at zero leaves that range
    behind, as a Clip: onnxruntime removes a Relu (or Relu6) in front of such a one. Returns how many inputs were
    changed.
    """
    graph = model.graph
    producers = {out: node for node in graph.node for out in node.output if out}
    weights = {t.name: t for t in graph.initializer}
    changed = 0
    for node in graph.node:
        if node.name not in names:
            continue
        for index, name in enumerate(node.input):
            made = producers.get(name)
            if made is None or made.op_type != "DequantizeLinear":
                continue
            quantiser = producers.get(made.input[0])
            if quantiser is not None and quantiser.op_type == "QuantizeLinear":
                node.input[index] = _clipped(graph, quantiser, weights)
            elif made.input[0] in weights:
                plain = f"{name}//plain"
                if plain not in weights:
                    tensor = numpy_helper.from_array(_dequantised(made, weights), plain)
                    graph.initializer.append(tensor)
                    weights[plain] = tensor
                node.input[index] = plain
            else:
                continue
            changed += 1
    _drop_unread_quantisers(model)
    sort_topologically(graph)
    return changed


def _clipped(graph: GraphProto, quantiser: NodeProto, weights: dict[str, TensorProto]) -> str:
    """What a skipped quantiser hands on: its input, cut to its range where that range does the work of a Relu."""
    source = str(quantiser.input[0])
    zero = weights.get(quantiser.input[2]) if len(quantiser.input) > 2 else None
    scale = weights.get(quantiser.input[1])
    if zero is None or scale is None or zero.data_type not in (TensorProto.INT8, TensorProto.UINT8):
        return source
    codes = np.iinfo(numpy_helper.to_array(zero).dtype)
    if numpy_helper.to_array(zero).size != 1 or numpy_helper.to_array(zero).item() != codes.min:
        return source
    target = f"{quantiser.output[0]}//clipped"
    if f"{target}//max" not in weights:
        limits = {
            f"{target}//min": 0.0,
            f"{target}//max": (codes.max - codes.min) * numpy_helper.to_array(scale).item(),
        }
        for name, value in limits.items():
            weights[name] = numpy_helper.from_array(np.array(value, np.float32), name)
            graph.initializer.append(weights[name])
        graph.node.append(helper.make_node("Clip", [source, *limits], [target], name=f"{quantiser.name}//range"))
    return target


def _dequantised(node: NodeProto, weights: Mapping[str, TensorProto]) -> npt.NDArray[np.float32]:
    values = [numpy_helper.to_array(weights[n]).astype(np.float32) for n in node.input]
    axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
    codes, scale = values[0], values[1]
    zero = values[2] if len(values) > 2 else np.zeros_like(scale)
    if scale.ndim == 1 and scale.size > 1:
        shape = [1] * codes.ndim
        shape[axis] = -1
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    return np.asarray((codes - zero) * scale, np.float32)


def _drop_unread_quantisers(model: ModelProto) -> None:
    graph = model.graph
    while True:
        read = {n for node in graph.node for n in node.input} | {v.name for v in graph.output}
        dead = [
            n for n in graph.node if n.op_type in ("QuantizeLinear", "DequantizeLinear") and n.output[0] not in read
        ]
        if not dead:
            break
        for node in dead:
            graph.node.remove(node)
    drop_unused_initializers(graph)

"""Ranges of every float tensor of an FP32 model over calibration data, in one streaming pass.

Every intermediate tensor is made an output and counted as soon as a batch has run, so that memory holds the model and
the tensors of one batch. The batch is chosen so that these stay under a limit; where even one sample has more, the
tensors are read in several groups (and the data run once per group, which the result says).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
from onnx import ModelProto

from deploychain.backends.onnx_graph import FLOAT, open_model, tensor_types
from deploychain.backends.ort import fitted_inputs, in_batches, session_options
from deploychain.errors import StageError
from deploychain.numerics.range import RangeCollector, TensorRange

MEMORY_LIMIT = 512 * 1024 * 1024  # bytes of intermediate tensors held at a time


@dataclass(frozen=True)
class RangeReport:
    """Ranges by tensor name, and what it took."""

    ranges: Mapping[str, TensorRange]
    samples: int
    runs: int  # session runs
    groups: int  # passes over the data; 1 unless one sample is over the memory limit
    batch_size: int
    first_non_finite: str = ""  # node that makes the first NaN or inf from finite inputs
    notes: tuple[str, ...] = field(default=())


def measure(
    model: ModelProto,
    inputs: Mapping[str, npt.NDArray[np.generic]],
    *,
    memory_limit: int = MEMORY_LIMIT,
    max_batch: int = 32,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> RangeReport:
    """Run a prepared FP32 model over the data and collect the range of each of its float tensors.

    Args:
        model: from `onnx_graph.prepare`.
        inputs: input name -> array; axis 0 counts samples.
        memory_limit: bytes that the intermediate tensors of one run may take.
        max_batch: samples per run at most; a batch axis that the model fixes wins.
        progress: called with (runs done, runs in all).

    Raises:
        StageError: the data do not fit the model, or onnxruntime fails on it.
    """
    weights = {t.name for t in model.graph.initializer}
    types = tensor_types(model)
    tensors = [n for node in model.graph.node for n in node.output if n and types.get(n) == FLOAT and n not in weights]
    probe = _session(model, tensors)
    feed, samples, _ = next(in_batches(probe, fitted_inputs(probe, inputs), 1))
    sizes = {n: np.asarray(v).nbytes for n, v in zip(tensors, _run(probe, tensors, feed), strict=True)}
    del probe
    per_sample = max(sum(sizes.values()), 1)
    batch = max(1, min(max_batch, memory_limit // per_sample))
    groups = _groups(sizes, memory_limit) if per_sample > memory_limit else [tensors]
    collectors = {n: RangeCollector(n) for n in tensors}
    for name, array in inputs.items():
        if np.asarray(array).dtype.kind == "f" and types.get(name) == FLOAT:
            collectors[name] = RangeCollector(name)
            collectors[name].update(np.asarray(array))
    runs = 1
    for group in groups:
        session = _session(model, group)
        feeds = fitted_inputs(session, inputs)
        rows = len(next(iter(feeds.values()))) if feeds else 1
        total = len(groups) * max(1, -(-rows // batch))
        for feed, _, _ in in_batches(session, feeds, batch):
            for name, value in zip(group, _run(session, group, feed), strict=True):
                collectors[name].update(np.asarray(value))
            runs += 1
            progress(runs - 1, total)
        del session
        samples = rows
    ranges = {n: c.result() for n, c in collectors.items()}
    return RangeReport(ranges, samples, runs, len(groups), batch, first_non_finite(model, ranges))


def first_non_finite(model: ModelProto, ranges: Mapping[str, TensorRange]) -> str:
    """Name of the first node, in graph order, that makes NaN or inf out of finite inputs; empty when none does."""
    bad_weights = {
        t.name for t in model.graph.initializer if t.data_type == FLOAT and not _finite(onnx.numpy_helper.to_array(t))
    }
    for node in model.graph.node:
        made = any(n in ranges and ranges[n].non_finite for n in node.output)
        given = any((n in ranges and ranges[n].non_finite) or n in bad_weights for n in node.input)
        if made and not given:
            return str(node.name)
    return ""


def _finite(array: npt.NDArray[np.generic]) -> bool:
    return bool(np.isfinite(np.asarray(array, dtype=np.float32)).all())


def _session(model: ModelProto, tensors: list[str]) -> ort.InferenceSession:
    options = session_options()
    # Tensors must be those that the graph names: no fusion across them. Memory goes back after each run.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    # Packed weights would be one more copy of the model for the sake of a few batches.
    options.add_session_config_entry("session.disable_prepacking", "1")
    # The outputs are lent to the model itself: a copy of it would hold the weights once more.
    outputs = model.graph.output
    before = len(outputs)
    present = {v.name for v in outputs}
    outputs.extend(onnx.helper.make_tensor_value_info(name, FLOAT, None) for name in tensors if name not in present)
    try:
        return open_model(model, options)
    finally:
        del outputs[before:]


def _run(session: ort.InferenceSession, names: list[str], feed: Mapping[str, npt.NDArray[np.generic]]) -> list[object]:
    try:
        result: list[object] = session.run(names, dict(feed))
        return result
    except Exception as error:
        raise StageError(
            f"onnxruntime failed on the calibration data: {' '.join(str(error).split())[:400]}",
            remedy="check the data's shapes against the model's inputs",
        ) from None


def _groups(sizes: Mapping[str, int], limit: int) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    room = limit
    for name, size in sizes.items():
        if size > room and groups[-1]:
            groups.append([])
            room = limit
        groups[-1].append(name)
        room -= size
    return groups

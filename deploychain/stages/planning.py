"""From an FP32 (or Q/DQ) ONNX file and data to a plan and a converted file: what the stage and the command share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deploychain.errors import StageError
from deploychain.numerics.decide import Rules, decide
from deploychain.plan import ModelPlan, apply_plan

Arrays = Mapping[str, npt.NDArray[Any]]


def _silent(done: int, total: int) -> None:
    return None


@dataclass(frozen=True)
class PlanRequest:
    """One model to plan."""

    source: Path
    precision: str  # fp16, bf16, or int8 for a Q/DQ model
    output: Path
    inputs: Arrays  # calibration data: input name -> array, axis 0 counts samples
    pins: Mapping[str, str] = field(default_factory=dict)
    data_max: float = 512.0
    init_max: float = 65504.0
    keep_io_types: bool = True
    modules: Mapping[str, str] = field(default_factory=dict)  # node -> torch module
    saved: ModelPlan | None = None  # re-apply this plan instead of deciding


def make_plan(request: PlanRequest, progress: Callable[[int, int], None] = _silent) -> ModelPlan:
    """Measure, decide, convert and prove one model.

    Raises:
        ArtifactError: the file cannot be read.
        StageError: the model is not FP32, the data do not fit, or the converted file is not valid; the node is named.
        CapabilityError: ModelOpt is missing.
    """
    from deploychain.backends import autocast, onnx_graph, onnx_local, onnx_range

    where = str(request.source)
    loaded = onnx_graph.load(request.source)
    onnx_graph.require_fp32(loaded, where)
    version = onnx_graph.opset(loaded)
    model = onnx_graph.prepare(loaded)
    del loaded
    quantised = onnx_graph.count_ops(model, "QuantizeLinear", "DequantizeLinear") > 0
    if request.precision == "int8" and not quantised:
        raise StageError(
            "the model has no QuantizeLinear nodes, so that there is nothing to plan in INT8",
            where=where,
            remedy="give the Q/DQ model (stage qat, or post-training quantisation)",
        )
    low = "bf16" if request.precision == "bf16" else "fp16"
    infos = onnx_graph.node_infos(model, request.modules, low)
    inputs = named_inputs(model, request.inputs)
    report = onnx_range.measure(model, inputs, progress=progress)
    local = onnx_local.local_snr(model, infos, inputs, low=low, batch_size=report.batch_size)
    rules = Rules(low, request.data_max, request.init_max, request.pins)
    nodes, findings = decide(infos, report.ranges, rules, local, report.first_non_finite)
    if request.saved is not None:
        nodes = apply_plan(nodes, request.saved, request.pins)
    keep = request.keep_io_types
    converted, removed = autocast.convert(model, {n.name: n.precision for n in nodes}, low=low, keep_io_types=keep)
    onnx_graph.save(converted, request.output)
    onnx_graph.check(request.output, version, where)
    return ModelPlan(
        precision=request.precision,
        nodes=nodes,
        findings=findings,
        output=request.output.name,
        opset=version,
        casts=onnx_graph.count_ops(converted, "Cast"),
        casts_removed=removed,
        samples=report.samples,
        notes=_notes(version, report.groups),
    )


def named_inputs(model: Any, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    """The arrays under the model's input names; by order where the names differ and the numbers agree.

    Raises:
        StageError: an input has no array.
    """
    weights = {t.name for t in model.graph.initializer}
    names = [v.name for v in model.graph.input if v.name not in weights]
    if all(n in arrays for n in names):
        return {n: np.asarray(arrays[n]) for n in names}
    if len(arrays) == len(names):
        return dict(zip(names, (np.asarray(a) for a in arrays.values()), strict=True))
    raise StageError(
        f"the model's inputs are {', '.join(names)}; the calibration data have {', '.join(arrays) or 'nothing'}",
        remedy="name the arrays after the model's inputs",
    )


def _notes(version: int, groups: int) -> tuple[str, ...]:
    notes = []
    if version != 17:
        notes.append(f"the model's own opset {version} is kept")
    if groups > 1:
        notes.append(f"one sample's tensors are over the memory limit: the data ran {groups} times")
    return tuple(notes)

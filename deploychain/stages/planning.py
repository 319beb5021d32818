"""From an FP32 (or Q/DQ) ONNX file and data to a plan and a converted file: what the stage and the command share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from deploychain.errors import ConfigError, StageError
from deploychain.numerics.calibration import Method
from deploychain.numerics.decide import decide
from deploychain.numerics.drop import Metric, Yardstick
from deploychain.numerics.finite import name_samples, non_finite_samples
from deploychain.numerics.islands import quantised_nodes
from deploychain.numerics.nodes import NodeInfo
from deploychain.numerics.npz import check_types
from deploychain.numerics.range import TensorRange
from deploychain.numerics.rules import Rules
from deploychain.plan import Finding, ModelPlan, NodePlan, apply_plan, as_decided, unmatched
from deploychain.stages.plan_convert import convert_and_prove
from deploychain.stages.plan_search import fingerprint_of, low_nodes, search_int8, search_low

if TYPE_CHECKING:
    from onnx import ModelProto

    from deploychain.backends.onnx_emulate import Emulator

Arrays = Mapping[str, npt.NDArray[Any]]
SMALL_ERROR = 0.01  # relative output error, 40 dB: below it nothing is done about sensitive nodes' inputs
_DEEPEST = 8


def _silent(step: str, done: int, total: int) -> None:
    return None


@dataclass(frozen=True)
class PlanRequest:
    """One model to plan."""

    source: Path
    precision: str  # fp16, bf16, or int8 for a Q/DQ model
    output: Path
    inputs: Arrays  # calibration data: input name -> array, axis 0 counts samples
    data: str = ""  # the file that they are from; empty: a task, in an order of its own
    pins: Mapping[str, str] = field(default_factory=dict)
    data_max: float = 512.0
    init_max: float = 65504.0
    keep_io_types: bool = True
    modules: Mapping[str, str] = field(default_factory=dict)  # node -> torch module
    saved: ModelPlan | None = None  # re-apply this plan instead of deciding
    max_drop: float | None = None  # search the smallest FP32 set that keeps the drop within this
    budget: int = 200  # evaluations of a search
    journal: Path | None = None  # evaluations of an interrupted search are kept here
    metric: Metric | None = None  # over the outputs; None: the output error counts
    metric_name: str = ""
    prove_guards: bool = True
    compute_capability: str = "8.9"
    spared: frozenset[str] = frozenset()  # nodes of a Q/DQ model to leave unquantised
    ptq: bool = False  # int8 from a model without quantisers: quantise it by calibration
    calibration: Method = "percentile"
    exclude: tuple[str, ...] = ()  # node name patterns that calibration leaves unquantised
    must_match: tuple[str, ...] = ()  # node name patterns that are refused where they match nothing


@dataclass(frozen=True)
class Measured:
    """A prepared model with everything that was measured on it."""

    model: ModelProto
    infos: tuple[NodeInfo, ...]
    inputs: dict[str, npt.NDArray[Any]]
    ranges: Mapping[str, TensorRange]
    local_snr: Mapping[str, float]
    first_non_finite: str
    samples: int
    groups: int
    batch_size: int
    opset: int
    low: str
    qdq: tuple[Finding, ...] = ()  # breaches of TensorRT's Q/DQ contract
    notes: tuple[str, ...] = ()


def measure(request: PlanRequest, progress: Callable[[str, int, int], None] = _silent) -> Measured:
    """Load, prepare and measure a model: ranges of its tensors, local error of its nodes.

    Raises:
        ArtifactError: the file cannot be read.
        ConfigError: a pattern of `must_match` matches no node, or `exclude` is given for a Q/DQ model.
        StageError: the model is not FP32, has no quantisers for int8, or the data do not fit.
    """
    from deploychain.backends import onnx_emulate, onnx_graph, onnx_local, onnx_range

    where = str(request.source)
    loaded = onnx_graph.load(request.source)
    onnx_graph.require_fp32(loaded, where)
    version = onnx_graph.opset(loaded)
    model = onnx_graph.prepare(loaded)
    del loaded
    lost = unmatched(request.must_match, [n.name for n in model.graph.node])
    if lost is not None:
        raise ConfigError(f"{lost[0]!r} matches no node", where=where, remedy=lost[1])
    low = "bf16" if request.precision == "bf16" else "fp16"
    inputs = named_inputs(model, request.inputs, request.data)
    qdq: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    if request.precision == "int8":
        if onnx_graph.count_ops(model, "QuantizeLinear", "DequantizeLinear"):
            if request.exclude:
                raise ConfigError(
                    "nodes are excluded from calibration, but the model has its quantisers already",
                    where=where,
                    remedy="pin the nodes to fp16 instead",
                )
            model, qdq = _contract(model, request)
        else:
            model, notes = _calibrated(model, inputs, request, progress)
    infos = onnx_graph.node_infos(model, request.modules, low)
    spared = _unquantised(infos, request)
    if spared and onnx_emulate.skip_quantisers(model, spared):
        model = onnx_graph.infer(model)
        infos = onnx_graph.node_infos(model, request.modules, low)
    report = onnx_range.measure(model, inputs, progress=lambda done, total: progress("ranges", done, total))
    local = onnx_local.local_snr(model, infos, inputs, low=low, batch_size=report.batch_size)
    return Measured(
        model,
        infos,
        inputs,
        report.ranges,
        local,
        report.first_non_finite,
        report.samples,
        report.groups,
        report.batch_size,
        version,
        low,
        qdq,
        notes,
    )


def _contract(model: ModelProto, request: PlanRequest) -> tuple[ModelProto, tuple[Finding, ...]]:
    """The Q/DQ model with mechanical breaches of TensorRT's contract repaired, and all breaches as findings."""
    from deploychain.backends.onnx_qdq import check_qdq, fix_qdq

    breaches = check_qdq(model, request.modules)
    fixed, repaired = fix_qdq(model)
    done = {(f.node, f.kind) for f in repaired}
    findings = []
    for breach in breaches:
        mended = (breach.node, breach.kind) in done
        severity = "warning" if mended and breach.severity == "error" else breach.severity
        remedy = f"repaired in the converted model; at its source: {breach.remedy}" if mended else breach.remedy
        findings.append(Finding(breach.node, breach.module or None, "qdq", severity, breach.detail, remedy))
    return (fixed if repaired else model), tuple(findings)


def _calibrated(
    model: ModelProto, inputs: Arrays, request: PlanRequest, progress: Callable[[str, int, int], None]
) -> tuple[ModelProto, tuple[str, ...]]:
    """The FP32 model quantised by calibration."""
    from deploychain.backends import onnx_ptq, onnx_range

    if not request.ptq:
        raise StageError(
            "the model has no QuantizeLinear nodes, so that there is nothing to plan in INT8",
            where=str(request.source),
            remedy="give a Q/DQ model (stage qat), or quantise it by calibration: plan.ptq: true",
        )
    report = onnx_range.measure(model, inputs, progress=lambda done, total: progress("calibration", done, total))
    made = onnx_ptq.quantise(model, report.ranges, method=request.calibration, exclude=request.exclude)
    left = f"; {len(made.left)} left out" if made.left else ""
    note = f"quantised after training: {len(made.nodes)} nodes, {request.calibration} of {report.samples} samples{left}"
    return made.model, (note,)


def make_plan(request: PlanRequest, progress: Callable[[str, int, int], None] = _silent) -> ModelPlan:
    """Measure, decide, search where asked, convert and prove one model.

    Raises:
        ArtifactError: the file cannot be read.
        StageError: the model is not FP32, the data do not fit, or the converted file is not valid; the node is named.
        CapabilityError: ModelOpt is missing.
    """
    from deploychain.backends.onnx_emulate import Emulator

    found = measure(request, progress)
    rules = Rules(found.low, request.data_max, request.init_max, request.pins)
    emulator, yardstick = working(request, found)
    evaluations = 0
    reached = True
    extra: tuple[Finding, ...] = ()
    if request.precision == "int8" and request.max_drop is not None and request.saved is None:
        evaluations, extra, request = _spare_quantised(request, found, emulator, yardstick, progress)
        found = measure(request, progress)
        emulator = Emulator(found.model, found.infos, found.inputs, low=found.low, batch_size=found.batch_size)
    nodes, findings, used = _decide(found, rules, emulator, yardstick, deepen=request.saved is None)
    evaluations += used
    if request.saved is not None:
        nodes = apply_plan(nodes, request.saved, request.pins)
    elif request.max_drop is not None and request.precision != "int8":
        searched = search_low(
            nodes,
            found.infos,
            found.local_snr,
            emulator,
            yardstick,
            low=found.low,
            limit=request.max_drop,
            budget=request.budget,
            journal=request.journal,
            fingerprint=_fingerprint(request, found),
            progress=lambda done, total: progress("search", done, total),
        )
        nodes, extra = searched.nodes, searched.findings
        evaluations, reached = evaluations + searched.search.evaluations, searched.search.reached
    nodes = tuple(_spared(n, request) for n in nodes)
    drop = yardstick.drop(emulator.outputs(low_nodes(nodes, found.low)))
    made = ModelPlan(
        precision=request.precision,
        nodes=nodes,
        findings=(*found.qdq, *as_decided(findings, nodes), *extra),
        evaluations=evaluations,
        drop=drop,
        drop_of=yardstick.of,
        within=None if request.max_drop is None else reached and drop <= request.max_drop,
        output=request.output.name,
        opset=found.opset,
        samples=found.samples,
        notes=_notes(found),
    )
    return convert_and_prove(request, found, made, emulator, yardstick)


def _decide(
    found: Measured, rules: Rules, emulator: Emulator, yardstick: Yardstick, *, deepen: bool
) -> tuple[tuple[NodePlan, ...], tuple[Finding, ...], int]:
    """Decide by the rules; where sensitive nodes still cost too much, keep more of what feeds them in FP32.

    How far back the rounding must stay away cannot be told from one node's local error, so it is tried: one run of
    the model per step, until the drop is small or no longer falls.
    """
    best = decide(found.infos, found.ranges, rules, found.local_snr, found.first_non_finite)
    if not deepen or not any(n.rule in ("sensitive", "divisor") for n in best[0]):
        return (*best, 0)
    lowest = yardstick.error(emulator.outputs(low_nodes(best[0], found.low)))
    depth = 1
    while lowest > SMALL_ERROR and depth < _DEEPEST:
        depth += 1
        tried = decide(
            found.infos, found.ranges, replace(rules, feed_depth=depth), found.local_snr, found.first_non_finite
        )
        error = yardstick.error(emulator.outputs(low_nodes(tried[0], found.low)))
        if error < lowest:
            best, lowest = tried, error
    return (*best, depth)


def working(request: PlanRequest, found: Measured) -> tuple[Emulator, Yardstick]:
    """What runs a measured model in chosen precisions, and what measures the drop.

    Drops count against FP32: for a Q/DQ model, against itself with every quantiser skipped.

    Raises:
        StageError: the metric of the FP32 model is not a number.
    """
    from deploychain.backends.onnx_emulate import Emulator

    emulator = Emulator(found.model, found.infos, found.inputs, low=found.low, batch_size=found.batch_size)
    plain = (
        frozenset(i.name for i in found.infos if i.op != "QuantizeLinear")
        if request.precision == "int8"
        else frozenset()
    )
    yardstick = Yardstick(emulator.outputs(frozenset(), plain), request.metric, request.metric_name)
    if request.metric is not None and not np.isfinite(request.metric(yardstick.reference)):
        raise StageError(
            f"{request.metric_name} of the FP32 model cannot be told on these data",
            where=str(request.source),
            remedy="for top1: `targets` are class indices, and an output has a score per sample and class",
        )
    return emulator, yardstick


def _spare_quantised(
    request: PlanRequest,
    found: Measured,
    emulator: Emulator,
    yardstick: Yardstick,
    progress: Callable[[str, int, int], None],
) -> tuple[int, tuple[Finding, ...], PlanRequest]:
    """Search the quantised nodes to leave out; they enter the request as pins to the low precision."""
    assert request.max_drop is not None
    low = frozenset(i.name for i in found.infos)
    heavy = [i.name for i in found.infos if i.name in quantised_nodes(found.infos)]
    search, findings = search_int8(
        heavy,
        found.infos,
        found.local_snr,
        lambda kept: emulator.outputs(low, kept),
        yardstick,
        limit=request.max_drop,
        budget=request.budget,
        journal=request.journal,
        fingerprint=_fingerprint(request, found),
        progress=lambda done, total: progress("search", done, total),
    )
    return search.evaluations, findings, replace(request, spared=frozenset(search.kept))


def named_inputs(model: ModelProto, arrays: Arrays, file: str = "") -> dict[str, npt.NDArray[Any]]:
    """The arrays under the model's input names; by order where the names differ and the numbers agree.

    Args:
        file: where the arrays come from, for messages.

    Raises:
        StageError: an input has no array, one of another meaning (integers for floats), or NaN or infinity.
    """
    from deploychain.backends.onnx_inputs import input_types

    types = input_types(model)
    names = list(types)
    check_types(arrays, types, file)
    found: dict[str, npt.NDArray[Any]] = {}
    if all(n in arrays for n in names):
        found = {n: np.asarray(arrays[n]) for n in names}
    elif len(arrays) == len(names):
        found = dict(zip(names, (np.asarray(a) for a in arrays.values()), strict=True))
    for name, array in found.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            where = f": {name_samples(non_finite_samples({name: array}))}" if file else ""
            raise StageError(
                f"the calibration data of input {name!r} hold NaN or infinity{where}",
                where=file,
                remedy="clean the data",
            )
    if found:
        return found
    raise StageError(
        f"the model's inputs are {', '.join(names)}; the calibration data have {', '.join(arrays) or 'nothing'}",
        remedy="name the arrays after the model's inputs",
    )


def _unquantised(infos: Sequence[NodeInfo], request: PlanRequest) -> frozenset[str]:
    """Quantised nodes that a pin, a saved plan or the search takes out of INT8."""
    rules = Rules(pins=request.pins)
    saved = request.saved.of() if request.saved is not None else {}
    found = set(request.spared)
    for name in quantised_nodes(infos):
        pin = rules.pinned(name)
        if (pin is not None and pin[1] != "int8") or saved.get(name, "int8") != "int8":
            found.add(name)
    return frozenset(found)


def _spared(node: NodePlan, request: PlanRequest) -> NodePlan:
    if node.name not in request.spared:
        return node
    return replace(node, rule="search", reason=f"left unquantised by the search; {node.reason}")


def _fingerprint(request: PlanRequest, found: Measured) -> str:
    from deploychain.artifact import sha256_of

    data = [(n, a.shape, float(np.asarray(a, np.float64).sum())) for n, a in sorted(found.inputs.items())]
    settings = (
        request.precision,
        request.data_max,
        request.init_max,
        sorted(request.pins.items()),
        request.metric_name,
    )
    return fingerprint_of(sha256_of(request.source), data, settings)


def _notes(found: Measured) -> tuple[str, ...]:
    notes = [*found.notes]
    if found.opset != 17:
        notes.append(f"the model's own opset {found.opset} is kept")
    if found.groups > 1:
        notes.append(f"one sample's tensors are over the memory limit: the data ran {found.groups} times")
    return tuple(notes)

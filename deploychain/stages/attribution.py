"""After a run: the step that lost most accuracy, and in it the nodes that lost most, as planned and as built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploychain.engine.classify import is_matrix_layer
from deploychain.errors import ArtifactError, ConfigError
from deploychain.numerics.attribution import Steps, steps_of
from deploychain.numerics.islands import quantised_nodes, quantiser_snr
from deploychain.numerics.nodes import Wiring
from deploychain.numerics.sensitivity import SensitivityTable, blocks_of, measure_sensitivity
from deploychain.plan import ModelPlan, NodePlan, Plan, read_plan
from deploychain.records import Comparison, LayerRecord, LayerVerdict, load_comparison
from deploychain.stages.plan_data import Calibration
from deploychain.stages.planning import PlanRequest, measure, working

# The step's model and the engine that is built from it.
_MODELS = {
    "qat": ("int8", "export/model.qat.onnx"),
    "onnx-int8": ("int8", "export/model.qat.onnx"),
    "engine-int8": ("int8", "export/model.qat.onnx"),
    "onnx-fp16": ("fp16", "export/model.fp32.onnx"),
    "engine-fp16": ("fp16", "export/model.fp32.onnx"),
}


@dataclass(frozen=True, slots=True)
class NodeCost:
    """What one node of the worst step costs."""

    node: str
    op: str
    module: str | None
    planned: str
    reason: str
    built: str  # precision of the layer that holds it; empty when the builder's listing does not say
    verdict: str
    alone: float | None  # output error in percent when only this node is in low precision
    spared: float | None  # the same when every node but this one is


@dataclass(frozen=True, slots=True)
class Attribution:
    """Where accuracy went."""

    steps: Steps
    nodes: tuple[NodeCost, ...]
    everything: float | None  # output error in percent with all nodes of the step in low precision
    evaluations: int
    note: str = ""  # why there is no table of nodes


def attribute(
    run: Path,
    data: Calibration | None,
    *,
    stage: str = "",
    budget: int = 201,
    progress: Callable[[str, int, int], None] = lambda step, done, total: None,
) -> Attribution:
    """Attribute the losses of a finished run.

    Args:
        run: the run folder.
        data: inputs for the node table; None: no node table.
        stage: look into this step instead of the worst one.
        budget: model evaluations for the node table at most.

    Raises:
        ArtifactError: the run has no comparison, or a file of it is damaged.
        ConfigError: the stage is none of this run's.
    """
    comparison = load_comparison(run / "comparison.json")
    steps = steps_of(comparison)
    chosen = stage or steps.worst
    if stage and stage not in {r.stage for r in steps.rows}:
        raise ConfigError(
            f"the run has no step {stage!r}", where="--stage", remedy=", ".join(r.stage for r in steps.rows)
        )
    if not chosen:
        return Attribution(steps, (), None, 0, "no step lost anything")
    if chosen not in _MODELS:
        return Attribution(steps, (), None, 0, f"{chosen} has no nodes to look into")
    if data is None:
        return Attribution(steps, (), None, 0, "no data for the node table")
    precision, file = _MODELS[chosen]
    source = run / file
    if not source.is_file():
        raise ArtifactError("the exported model is missing", where=str(source), remedy="run the export stage again")
    planned = _plan_of(run, precision)
    layers = _layers_of(comparison, precision)
    table = _costs(source, precision, data, planned, budget, progress)
    nodes = []
    for row in table.rows:
        node = planned.get(row.block)
        layer = layers.get(row.block)
        nodes.append(
            NodeCost(
                row.block,
                "/".join(row.ops),
                node.module if node else None,
                node.precision if node else "",
                node.reason if node else "",
                layer.compute.value if layer is not None and layer.compute is not None else "",
                layer.verdict.value if layer is not None else LayerVerdict.UNKNOWN.value,
                row.alone,
                row.spared,
            )
        )
    note = ""
    if chosen == "qat":
        note = "the quantisers alone are in the table below; the rest of the added error is what fine-tuning changed"
    return Attribution(steps, tuple(nodes), table.everything, table.evaluations, note)


def _costs(
    source: Path,
    precision: str,
    data: Calibration,
    planned: Mapping[str, NodePlan],
    budget: int,
    progress: Callable[[str, int, int], None],
) -> SensitivityTable:
    request = PlanRequest(source, precision, source, data.inputs, data.file)
    found = measure(request, progress)
    emulator, yardstick = working(request, found)
    local: Mapping[str, float] = found.local_snr
    if precision == "int8":
        quantised = quantised_nodes(found.infos)
        candidates = [i.name for i in found.infos if i.name in quantised]
        local = quantiser_snr(candidates, Wiring.of(found.infos), found.local_snr)
    else:
        candidates = [n for n, p in planned.items() if p.precision == precision]
    every = frozenset(candidates)
    done = 0

    def drop_of(nodes: frozenset[str]) -> float:
        nonlocal done
        done += 1
        progress("nodes", done, min(budget, 2 * len(candidates) + 1))
        if precision == "int8":
            return yardstick.drop(emulator.outputs(frozenset(), every - nodes))
        return yardstick.drop(emulator.outputs(nodes))

    infos = {i.name: i for i in found.infos}
    return measure_sensitivity(blocks_of(found.infos, candidates), infos, local, drop_of, budget)


def _plan_of(run: Path, precision: str) -> dict[str, NodePlan]:
    path = run / "plan" / "precision-plan.json"
    plan: Plan | None = read_plan(path) if path.is_file() else None
    made: ModelPlan | None = plan.models.get(precision) if plan is not None else None
    return {n.name: n for n in made.nodes} if made is not None else {}


def _layers_of(comparison: Comparison, precision: str) -> dict[str, LayerRecord]:
    """ONNX node -> the layer that computes it."""
    found: dict[str, LayerRecord] = {}
    for engine in comparison.engines:
        if engine.name != precision:
            continue
        for layer in engine.layers:
            for node in layer.onnx_nodes:
                # The bias and requantisation kernels of a convolution carry its name too.
                if node not in found or (is_matrix_layer(layer) and not is_matrix_layer(found[node])):
                    found[node] = layer
    return found


def data_of(pipeline: Path | None, arrays: Path | None, samples: int) -> Calibration | None:
    """Data for the node table: arrays, or the calibration data of a pipeline's task.

    Raises:
        ConfigError: the pipeline has neither a task nor data.
    """
    from deploychain.stages.plan_data import from_npz, from_task

    if arrays is not None:
        return from_npz(arrays, samples)
    if pipeline is None:
        return None
    from deploychain.config import load_pipeline

    loaded: Any = load_pipeline(pipeline)
    if loaded.task is not None:
        return from_task(loaded.task.load(), samples, loaded.settings.seed)
    if loaded.settings.data is not None:
        return from_npz((pipeline.parent / loaded.settings.data).resolve(), samples)
    raise ConfigError("the pipeline has neither a task nor data", where=str(pipeline), remedy="give --data")

"""From a decided plan to a converted, proved file whose FP32 guards hold in the built engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deploychain.numerics.drop import Yardstick
from deploychain.numerics.nodes import NodeInfo
from deploychain.plan import Finding, ModelPlan, NodePlan
from deploychain.stages.plan_search import low_nodes

if TYPE_CHECKING:
    from deploychain.backends.onnx_emulate import Emulator
    from deploychain.stages.planning import Measured, PlanRequest


def convert_and_prove(
    request: PlanRequest, found: Measured, made: ModelPlan, emulator: Emulator, yardstick: Yardstick
) -> ModelPlan:
    """Write the converted file, prove it, and prove its guards by building."""
    from deploychain.backends import autocast, guards, onnx_graph

    converted, removed = autocast.convert(found.model, made.of(), low=found.low, keep_io_types=request.keep_io_types)
    anchors = [n.name for n in made.nodes if n.anchored]
    if anchors:
        guards.anchor(converted, anchors)
    # Under its own name only when all is proved: an output that is not valid, or lacks an anchor, must not be left.
    draft = request.output.with_name(f".{request.output.name}.draft")

    def write() -> None:
        onnx_graph.save(converted, draft, data=f"{request.output.name}.data")
        onnx_graph.check(draft, found.opset, str(request.source), runnable=found.low != "bf16")

    try:
        write()
        wanted = _guards(made.nodes, found.infos)
        if wanted and request.prove_guards:
            operators = {i.name: i.op for i in found.infos}
            shapes = {n: tuple(a.shape) for n, a in found.inputs.items()}

            def build() -> guards.Proof:
                return guards.prove(
                    draft, wanted, operators, compute_capability=request.compute_capability, shapes=shapes
                )

            proof = build()
            repaired: frozenset[str] = frozenset()
            if proof.demoted:
                guards.anchor(converted, [n for n in proof.demoted if n not in anchors])
                write()
                again = build()
                repaired, proof = frozenset(proof.demoted) - again.demoted.keys(), again
            low = low_nodes(made.nodes, found.low)
            costs = {n: yardstick.drop(emulator.outputs(low | {n})) for n in proof.demoted}
            made = _judged(made, found, proof.how, proof.reason, proof.held, repaired, proof.demoted, costs)
        draft.replace(request.output)
    finally:
        draft.unlink(missing_ok=True)
    return replace(made, casts=onnx_graph.count_ops(converted, "Cast"), casts_removed=removed)


def _judged(
    made: ModelPlan,
    found: Measured,
    how: str,
    reason: str,
    held: frozenset[str],
    repaired: frozenset[str],
    demoted: Mapping[str, str],
    costs: Mapping[str, float],
) -> ModelPlan:
    """The plan with what the build said about each guard."""
    nodes = []
    findings = list(made.findings)
    modules = {i.name: i.module for i in found.infos}
    for node in made.nodes:
        if node.name in demoted:
            findings.append(
                Finding(
                    node.name,
                    modules.get(node.name),
                    "guard",
                    "error",
                    f"planned FP32, but {demoted[node.name]}; drop then {costs[node.name]:.3g} ({made.drop_of})",
                    "the builder does not hold it: change the model around it, or accept the cost by a pin to fp16",
                )
            )
            node = replace(node, guard="demoted")
        elif node.name in repaired:
            detail = (
                f"the builder folded this node into {found.low.upper()}; a Clip to the range of FP32 behind it holds it"
            )
            findings.append(Finding(node.name, modules.get(node.name), "guard", "note", detail, "repaired"))
            node = replace(node, guard="held", anchored=True, reason=f"{node.reason}; anchored: {how}")
        elif node.name in held:
            node = replace(node, guard="held")
        elif node.precision == "fp32" and not reason and node.rule not in ("operator", "follows", "island"):
            node = replace(node, guard="unknown")
        nodes.append(node)
    note = f"guards not proved: {reason}" if reason else f"guards proved by building with {how}"
    return replace(made, nodes=tuple(nodes), findings=tuple(findings), notes=(*made.notes, note))


def _guards(nodes: Sequence[NodePlan], infos: Sequence[NodeInfo]) -> frozenset[str]:
    """FP32 nodes that would compute in low precision but for the plan."""
    lowerable = {i.name for i in infos if i.is_float and not i.not_lowerable}
    return frozenset(n.name for n in nodes if n.precision == "fp32" and n.name in lowerable)

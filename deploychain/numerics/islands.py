"""The shape of a plan: which nodes are quantised, which follow their inputs, which FP32 islands are worth merging."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from deploychain.numerics.nodes import DATA_MOVEMENT, EXACT, HEAVY, QUANTISABLE, NodeInfo, Wiring
from deploychain.plan import NodePlan


def settle(plans: dict[str, NodePlan], wiring: Wiring, low: str) -> None:
    """Make the plan cheap without changing what it protects, in place and in graph order.

    Nodes that only hand values on take the precision of their input: a cast there would buy nothing. A light
    low-precision node with FP32 on every side costs two casts and saves nothing: it joins the island.
    """
    free = ("data-max", "in-range", "search-free")
    for info in wiring.nodes.values():
        plan = plans[info.name]
        if info.op not in EXACT or plan.rule not in free or info.not_lowerable:
            continue
        makers = [plans[m.name] for m in wiring.feeding(info)]
        if not makers or any(m.precision not in ("fp32", low) for m in makers):
            continue
        wide = [m for m in makers if m.precision == "fp32"]
        target = "fp32" if 2 * len(wide) > len(makers) else low
        if target != plan.precision:
            reason = f"hands on the values of {(wide or makers)[0].name}, in their precision ({plan.reason})"
            plans[info.name] = replace(plan, precision=target, rule="follows", reason=reason)
    for info in wiring.nodes.values():
        plan = plans[info.name]
        if plan.precision != low or plan.rule == "pin" or info.op in HEAVY:
            continue
        before, after = wiring.feeding(info), wiring.following(info)
        if before and after and all(plans[n.name].precision == "fp32" for n in (*before, *after)):
            reason = f"between FP32 nodes only: two casts saved ({plan.reason})"
            plans[info.name] = replace(plan, precision="fp32", rule="island", reason=reason)


def quantised_nodes(infos: Sequence[NodeInfo]) -> frozenset[str]:
    """What TensorRT runs in INT8: quantisable operators fed by DequantizeLinear, and what just hands values on."""
    wiring = Wiring.of(infos)

    def dequantised(name: str) -> bool:
        made = wiring.source(name)
        return made is not None and made.op == "DequantizeLinear"

    found = set()
    for info in infos:
        if info.op in QUANTISABLE:
            if len(info.inputs) > 1 and all(dequantised(n) for n in info.inputs[:2]):
                found.add(info.name)
        elif info.op in ("MaxPool", *DATA_MOVEMENT) and info.float_inputs:
            readers = wiring.following(info)
            requantised = bool(readers) and all(r.op == "QuantizeLinear" for r in readers)
            if requantised and all(dequantised(n) for n in info.float_inputs):
                found.add(info.name)
    return frozenset(found)


def quantiser_snr(nodes: Iterable[str], wiring: Wiring, local_snr: Mapping[str, float]) -> dict[str, float]:
    """Quantised node -> the lowest SNR of the quantisers that feed it, dB; nodes without a known one are absent."""
    found = {}
    for node in nodes:
        known = [local_snr[q] for q in wiring.quantisers(wiring.nodes[node]) if q in local_snr]
        if known:
            found[node] = min(known)
    return found

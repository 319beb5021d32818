"""The search for the smallest set of nodes to keep out of low precision, over one model."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from deploychain.numerics.drop import Yardstick
from deploychain.numerics.islands import quantiser_snr, settle
from deploychain.numerics.nodes import EXACT, NodeInfo, Wiring
from deploychain.numerics.search import Journal, Search, fewer_kept, smallest_kept
from deploychain.plan import Finding, NodePlan

if TYPE_CHECKING:
    from deploychain.backends.onnx_emulate import Emulator

# What a search may not undo: emulation on a few samples does not see it, or the user wants it.
_HARD = frozenset(
    {"pin", "operator", "overflow", "weight-overflow", "vanishing-constant", "weight-underflow", "divisor"}
    | {"grid", "long-sum", "quantised", "integer"}
)


_SHORT_LIST = 60  # items: up to here one evaluation each is affordable


@dataclass(frozen=True)
class Searched:
    """The plan after a search."""

    nodes: tuple[NodePlan, ...]
    findings: tuple[Finding, ...]
    search: Search


def low_nodes(nodes: Sequence[NodePlan], low: str) -> frozenset[str]:
    """The nodes that compute in the low precision; quantised nodes do so around their INT8 part."""
    return frozenset(n.name for n in nodes if n.precision in (low, "int8"))


def search_low(
    nodes: Sequence[NodePlan],
    infos: Sequence[NodeInfo],
    local_snr: Mapping[str, float],
    emulator: Emulator,
    yardstick: Yardstick,
    *,
    low: str,
    limit: float,
    budget: int,
    journal: Path | None,
    fingerprint: str,
    progress: Callable[[int, int], None],
) -> Searched:
    """Find the fewest FP32 nodes beyond the certain ones that keep the drop within ``limit``."""
    wiring = Wiring.of(infos)
    plans = {n.name: n for n in nodes}
    hard = {n.name for n in nodes if n.rule in _HARD}
    movable = [i.name for i in infos if i.is_float and i.name not in hard and i.op not in EXACT]
    order = sorted(movable, key=lambda n: (plans[n].precision != "fp32", _suspicion(local_snr.get(n))))

    def variant(kept: Set[str]) -> dict[str, NodePlan]:
        made = dict(plans)
        for info in infos:
            if info.name in hard or not info.is_float:
                continue
            wide = info.name in kept
            made[info.name] = replace(
                plans[info.name],
                precision="fp32" if wide else low,
                rule="search" if wide else "search-free",
            )
        settle(made, wiring, low)
        return made

    def evaluate(kept: frozenset[str]) -> float:
        progress(counter.evaluations, budget)
        return yardstick.drop(emulator.outputs(low_nodes(tuple(variant(kept).values()), low)))

    counter = Journal(evaluate, journal, fingerprint)
    found = _fewest(order, counter, limit, budget)
    made = variant(frozenset(found.kept))
    for name, plan in made.items():
        made[name] = _explained(plan, plans[name], found, yardstick, limit)
    return Searched(tuple(made.values()), _findings(found, wiring.nodes, yardstick, limit, low), found)


def search_int8(
    quantised: Sequence[str],
    infos: Sequence[NodeInfo],
    local_snr: Mapping[str, float],
    outputs_without: Callable[[frozenset[str]], Mapping[str, object]],
    yardstick: Yardstick,
    *,
    limit: float,
    budget: int,
    journal: Path | None,
    fingerprint: str,
    progress: Callable[[int, int], None],
) -> tuple[Search, tuple[Finding, ...]]:
    """Find the fewest quantised nodes to leave unquantised so that the drop stays within ``limit``."""
    wiring = Wiring.of(infos)
    worst = quantiser_snr(quantised, wiring, local_snr)
    order = sorted(quantised, key=lambda n: _suspicion(worst.get(n)))

    def evaluate(kept: frozenset[str]) -> float:
        progress(counter.evaluations, budget)
        return yardstick.drop(outputs_without(kept))  # type: ignore[arg-type]

    counter = Journal(evaluate, journal, fingerprint)
    found = _fewest(order, counter, limit, budget)
    return found, _findings(found, wiring.nodes, yardstick, limit, "int8")


def fingerprint_of(*parts: object) -> str:
    """Names one search: what was searched, on which data, under which settings."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _fewest(order: Sequence[str], counter: Journal, limit: float, budget: int) -> Search:
    found = smallest_kept(order, counter, limit, budget)
    if len(order) <= _SHORT_LIST:
        found = fewer_kept(order, found, counter, limit, budget)
    return found


def _suspicion(snr: float | None) -> float:
    return math.inf if snr is None or math.isnan(snr) else snr


def _explained(plan: NodePlan, before: NodePlan, found: Search, yardstick: Yardstick, limit: float) -> NodePlan:
    if plan.rule == "search":
        reason = (
            f"found by search: {len(found.kept)} such nodes bring the drop from {_number(found.drop_without)} "
            f"to {_number(found.drop)} ({yardstick.of})"
        )
        return replace(plan, reason=reason)
    if plan.rule == "search-free":
        if before.precision == plan.precision:
            return before
        reason = f"the drop stays at {_number(found.drop)} <= {limit:g} ({yardstick.of}) with it; {before.reason}"
        return replace(plan, reason=reason)
    return plan


def _findings(
    found: Search, nodes: Mapping[str, NodeInfo], yardstick: Yardstick, limit: float, low: str
) -> tuple[Finding, ...]:
    if not found.kept or not found.reached:
        return ()
    spared = "1 node" if len(found.kept) == 1 else f"{len(found.kept)} nodes"
    detail = (
        f"{low.upper()} costs too much: drop {_number(found.drop_without)} with every node in it, "
        f"{_number(found.drop)} without {spared}, limit {limit:g} ({yardstick.of})"
    )
    return tuple(
        Finding(name, nodes[name].module, "sensitive", "warning", detail, "kept out of it by the search")
        for name in found.kept
    )


def _number(value: float) -> str:
    return "infinite" if math.isinf(value) else f"{value:.3g}"

"""What each node, or each block of nodes, costs: alone in low precision, and as the only one spared from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from deploychain.numerics.nodes import NodeInfo

DropOf = Callable[[frozenset[str]], float]  # exactly these nodes in low precision -> drop


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """One block. ``alone`` and ``spared`` are None where the budget did not reach it."""

    block: str
    nodes: tuple[str, ...]
    ops: tuple[str, ...]
    local_snr_db: float | None  # the lowest of its nodes
    alone: float | None  # drop when only this block is in low precision
    spared: float | None  # drop when everything but this block is
    share: float | None = None  # of the drop of all blocks together that sparing it saves, 0..1


@dataclass(frozen=True, slots=True)
class SensitivityTable:
    """Blocks, the most costly first."""

    rows: tuple[Sensitivity, ...]
    everything: float  # drop with every block in low precision
    evaluations: int
    exact: bool  # False: only the most suspicious blocks were run, see ``alone``


def blocks_of(infos: Sequence[NodeInfo], nodes: Sequence[str], by: str = "node") -> dict[str, tuple[str, ...]]:
    """Group nodes by name or by torch module (nodes without a module stand alone)."""
    chosen = set(nodes)
    groups: dict[str, list[str]] = {}
    for info in infos:
        if info.name in chosen:
            key = info.module if by == "module" and info.module else info.name
            groups.setdefault(key, []).append(info.name)
    return {key: tuple(names) for key, names in groups.items()}


def measure_sensitivity(
    blocks: Mapping[str, Sequence[str]],
    infos: Mapping[str, NodeInfo],
    local_snr: Mapping[str, float],
    drop_of: DropOf,
    budget: int,
) -> SensitivityTable:
    """Two evaluations per block, the most suspicious (lowest local SNR) first, until the budget is spent.

    Args:
        blocks: block name -> its nodes.
        drop_of: evaluates the model with exactly the given nodes in low precision.
        budget: evaluations at most, at least 1 (everything low).
    """
    low = frozenset(n for names in blocks.values() for n in names)
    everything = drop_of(low)
    used = 1
    local = {b: min((local_snr[n] for n in names if n in local_snr), default=None) for b, names in blocks.items()}
    order = sorted(blocks, key=lambda b: math.inf if local[b] is None else _finite(local[b]))
    rows = []
    for block in order:
        names = frozenset(blocks[block])
        alone = spared = share = None
        if used + 2 <= budget:
            alone, spared = drop_of(names), drop_of(low - names)
            used += 2
            if math.isfinite(everything) and everything > 0:
                share = (everything - spared) / everything
            elif math.isinf(everything):
                share = 1.0 if math.isfinite(spared) else 0.0
        ops = tuple(dict.fromkeys(infos[n].op for n in blocks[block]))
        rows.append(Sensitivity(block, tuple(blocks[block]), ops, local[block], alone, spared, share))
    rows.sort(key=lambda r: -math.inf if r.alone is None else -_finite(r.alone))
    rows.sort(key=lambda r: r.alone is None)
    return SensitivityTable(tuple(rows), everything, used, all(r.alone is not None for r in rows))


def _finite(value: float | None) -> float:
    """NaN sorts like the worst."""
    return -math.inf if value is None or math.isnan(value) else value

"""Additive attention masks: large negative values that a Softmax turns into zero, in FP32 and in FP16 alike.

In FP16 -1e9 is minus infinity, or -65504 where a converter clamps it; behind the Softmax it is zero in either case.
So the overflow of a mask is worth a note, not a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deploychain.numerics.nodes import DATA_MOVEMENT, Constant, NodeInfo, Wiring
from deploychain.numerics.range import FP16_MAX, TensorRange

_PASSING = DATA_MOVEMENT | {"Add", "Sub", "Mul", "Div", "Where", "Clip", "Max", "Min"}


def mask_nodes(infos: Sequence[NodeInfo], ranges: Mapping[str, TensorRange], wiring: Wiring) -> frozenset[str]:
    """The nodes that make a mask or add it to scores.

    Such a node gets large negative values from a constant, a network input or another such node, all its results end
    in a Softmax, and they overflow below zero only, and not all of them (a bias that shifts every score is no mask).

    Args:
        infos: facts of the nodes, in topological order.
        ranges: tensor name -> range over the calibration data.
    """
    ending: set[str] = set()
    for info in reversed(infos):
        readers = [wiring.nodes[r] for t in info.float_outputs for r in wiring.readers.get(t, ())]
        if info.op in _PASSING and readers and all(r.op == "Softmax" or r.name in ending for r in readers):
            ending.add(info.name)
    found: set[str] = set()
    for info in infos:
        if info.name not in ending or not all(_masked(ranges[n]) for n in info.float_outputs if n in ranges):
            continue
        makers = {name: wiring.producer.get(name) for name in info.float_inputs}
        given = [ranges[n] for n, maker in makers.items() if maker is None and n in ranges]
        if (
            any(_large_negative(c) for c in info.constants)
            or any(maker in found for maker in makers.values())
            or any(r.minimum < -FP16_MAX and _masked(r) for r in given)
        ):
            found.add(info.name)
    return frozenset(found)


def _large_negative(constant: Constant) -> bool:
    found = constant.range
    return found.minimum < -FP16_MAX and found.maximum <= 0.0 and not found.positive_inf and not found.nans


def _masked(found: TensorRange) -> bool:
    """Nothing overflows above zero, and something does not overflow at all."""
    over = found.overflow_share * found.count + found.non_finite
    return found.maximum <= FP16_MAX and not found.positive_inf and not found.nans and over < found.count

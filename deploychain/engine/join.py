"""Which profile row belongs to which layer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from deploychain.engine.model import Profile
from deploychain.records import LayerKind, LayerRecord

_KERNEL = re.compile(r"_myl(\d{1,6})_\d{1,6}$")
# Rows that have no layer, or layers that have no row, in every engine: nothing is wrong with them.
_HELPER_ROW = re.compile(r"shape_call|^\[(?:HostToDevice|DeviceToHost)Copy|^signal|^wait|_myl\d+_0$")


@dataclass(frozen=True, slots=True)
class Joined:
    """Milliseconds per inference and share of the summed layer time, per layer; None where no row was found."""

    times: tuple[float | None, ...]
    shares: tuple[float | None, ...]
    how: str  # "position", "name", "none"
    unmatched_rows: tuple[str, ...] = ()
    unmatched_layers: tuple[str, ...] = ()
    problem: str | None = None


def join(layers: Sequence[LayerRecord], profile: Profile) -> Joined:
    """Give each layer its time.

    By position where names and order agree (layers of one name stay apart), else by name, duplicates in order. The
    kernels of a Myelin node (``..._mylS_I`` rows, S the node's place in the list) are summed for it. Fewer than half
    of the rows matching means another engine: nothing is joined.
    """
    names = [layer.name for layer in layers]
    rows = profile.names
    if len(names) == len(rows) and all(a == b for a, b in zip(names, rows, strict=True)):
        owner: list[int | None] = list(range(len(rows)))
        how = "position"
    else:
        owner = _by_name(layers, rows)
        how = "name"
    matched = sum(o is not None for o in owner)
    if rows and matched * 2 < len(rows):
        return Joined(
            (None,) * len(names),
            (None,) * len(names),
            "none",
            problem=f"only {matched} of {len(rows)} profile rows are layers of this engine: it is of another one",
        )
    return _sum(layers, profile, owner, how)


def _by_name(layers: Sequence[LayerRecord], rows: Sequence[str]) -> list[int | None]:
    places: dict[str, list[int]] = defaultdict(list)
    for index in range(len(layers) - 1, -1, -1):
        places[layers[index].name.strip()].append(index)
    owner: list[int | None] = []
    for row in rows:
        waiting = places.get(row.strip())
        owner.append(waiting.pop() if waiting else None)
    taken = set(owner)
    for place, row in enumerate(rows):
        if owner[place] is None:
            kernel = _KERNEL.search(row)
            index = int(kernel.group(1)) if kernel else len(layers)
            if index < len(layers) and layers[index].kind is LayerKind.OPAQUE and index not in taken:
                owner[place] = index
    return owner


def _sum(layers: Sequence[LayerRecord], profile: Profile, owner: Sequence[int | None], how: str) -> Joined:
    mean: list[float | None] = [None] * len(layers)
    total: list[float] = [0.0] * len(layers)
    whole = 0.0
    unmatched: list[str] = []
    for row, index in enumerate(owner):
        spent = profile.total_ms[row]
        if spent == spent and abs(spent) != float("inf"):
            whole += spent
        if index is None:
            unmatched.append(profile.names[row])
            continue
        value = profile.mean_ms[row]
        if value != value and profile.iterations and spent == spent:
            value = spent / profile.iterations
        if value == value and abs(value) != float("inf"):
            mean[index] = (mean[index] or 0.0) + value
            total[index] += spent if spent == spent and abs(spent) != float("inf") else 0.0
    has_row = {index for index in owner if index is not None}
    if profile.skips_zero_rows and profile.complete:
        for index in range(len(layers)):  # a table of 8.4 and later leaves out layers that took no time
            if index not in has_row and layers[index].kind is not LayerKind.OPAQUE:
                mean[index] = 0.0
                has_row.add(index)
    shares = tuple(
        None if time is None or whole <= 0 else spent / whole for time, spent in zip(mean, total, strict=True)
    )
    missing = tuple(layers[index].name for index in range(len(layers)) if index not in has_row)
    return Joined(tuple(mean), shares, how, tuple(unmatched), missing)


def is_helper_row(name: str) -> bool:
    """Whether a profile row is known to have no layer of its own."""
    return _HELPER_ROW.search(name) is not None

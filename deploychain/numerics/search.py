"""The smallest set of items to keep in high precision, in O(k log n) evaluations for k culprits.

Items stand in order of suspicion. While the set found so far does not suffice, bisection finds the shortest prefix of
the rest that does together with it: the last item of that prefix is necessary and joins the set, and the search goes
on inside the prefix. (This is the progression that minimal-conflict algorithms such as QuickXplain use; it assumes
that keeping more items never makes the result worse.) The first bisection gallops, so that a good order costs a
handful of evaluations; a bad one costs 2 log n for the first culprit and log n for each further one.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from deploychain.errors import StageError

Evaluate = Callable[[frozenset[str]], float]
_GALLOP = 4


@dataclass(frozen=True, slots=True)
class Search:
    """What a search found.

    ``minimal`` is False where it stopped early (the budget ran out): ``kept`` then suffices but may hold more than
    needed. ``reached`` is False where not even keeping every item suffices.
    """

    kept: tuple[str, ...]
    drop: float
    drop_without: float  # with nothing kept
    evaluations: int
    reached: bool
    minimal: bool


@dataclass
class Journal:
    """Counts evaluations, and remembers them in a file so that an interrupted search goes on where it was.

    Each line of the file is one evaluation; a line that was cut by an interruption is dropped. A file of another
    search (another model, data or settings: another ``fingerprint``) is started anew.
    """

    evaluate: Evaluate
    path: Path | None = None
    fingerprint: str = ""
    evaluations: int = 0  # distinct sets, remembered ones included
    replayed: int = 0
    _known: dict[str, float] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.path is not None and self.path.exists():
            self._load(self.path)

    def __call__(self, kept: frozenset[str]) -> float:
        key = hashlib.sha256("\0".join(sorted(kept)).encode()).hexdigest()[:24]
        fresh = key not in self._seen
        if fresh:
            self._seen.add(key)
            self.evaluations += 1
        if key in self._known:
            self.replayed += fresh
            return self._known[key]
        value = float(self.evaluate(kept))
        self._known[key] = value
        self._append({"kept": key, "size": len(kept), "drop": value if value == value else "nan"})
        return value

    def _load(self, path: Path) -> None:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        try:
            head = json.loads(lines[0]) if lines else {}
        except ValueError:
            head = {}
        if not isinstance(head, dict) or head.get("search") != self.fingerprint:
            path.unlink()
            return
        for line in lines[1:]:
            try:
                row = json.loads(line)
                self._known[row["kept"]] = float(row["drop"])
            except (ValueError, KeyError, TypeError):
                continue

    def _append(self, row: dict[str, object]) -> None:
        if self.path is None:
            return
        try:
            new = not self.path.exists()
            with self.path.open("a", encoding="utf-8") as stream:
                if new:
                    stream.write(json.dumps({"search": self.fingerprint}) + "\n")
                stream.write(json.dumps(row) + "\n")
        except OSError as error:
            raise StageError(f"cannot write the search journal: {error.strerror}", where=str(self.path)) from None


def smallest_kept(items: Sequence[str], evaluate: Journal, limit: float, budget: int = 200) -> Search:
    """Find a minimal subset of ``items`` with ``evaluate(subset) <= limit``.

    Args:
        items: most suspicious first.
        evaluate: drop with exactly the given items in high precision.
        limit: largest allowed drop.
        budget: evaluations at most; then the smallest sufficient set so far is returned.
    """
    without = evaluate(frozenset())
    if _holds(without, limit):
        return Search((), without, without, evaluate.evaluations, True, True)
    everything = evaluate(frozenset(items))
    if not _holds(everything, limit):
        return Search(tuple(items), everything, without, evaluate.evaluations, False, False)
    found: list[str] = []
    pool = list(items)
    best = (pool, everything)  # sufficient so far
    first = True
    while True:
        length = _shortest(found, pool, evaluate, limit, budget, gallop=first)
        first = False
        best = ([*found, *pool[:length]], evaluate(frozenset([*found, *pool[:length]])))
        if evaluate.evaluations >= budget:
            return Search(tuple(best[0]), best[1], without, evaluate.evaluations, True, len(best[0]) == len(found))
        found.append(pool[length - 1])
        pool = pool[: length - 1]
        now = evaluate(frozenset(found))
        if _holds(now, limit):
            return Search(tuple(found), now, without, evaluate.evaluations, True, True)
        if not pool:  # not monotone: the parts do what the whole did not
            return Search(tuple(best[0]), best[1], without, evaluate.evaluations, True, False)


def fewer_kept(items: Sequence[str], found: Search, evaluate: Journal, limit: float, budget: int = 200) -> Search:
    """Look for a smaller set than ``found``, by what each item costs alone.

    A minimal set need not be the smallest: where many small errors add up, the largest ones should be kept out.
    Their order takes one evaluation per item, so this is for short lists; the answer is never worse than ``found``.
    """
    every = frozenset(items)
    if len(found.kept) < 2 or not found.reached or evaluate.evaluations + len(items) > budget:
        return found
    costs = {item: evaluate(every - {item}) for item in items}
    order = sorted(items, key=lambda item: -costs[item] if costs[item] == costs[item] else -math.inf)
    pool = order[: len(found.kept)]
    if _holds(evaluate(frozenset(pool)), limit):
        length = _shortest([], pool, evaluate, limit, budget, gallop=False)
        if length < len(found.kept):
            kept = tuple(pool[:length])
            drop = evaluate(frozenset(kept))
            return Search(kept, drop, found.drop_without, evaluate.evaluations, True, True)
    return replace(found, evaluations=evaluate.evaluations)


def _shortest(found: list[str], pool: list[str], evaluate: Journal, limit: float, budget: int, *, gallop: bool) -> int:
    """Length of the shortest prefix of ``pool`` that suffices with ``found``; the whole pool is known to."""
    low, high = 0, len(pool)  # low does not suffice, high does
    step = 1
    while gallop and step < high and evaluate.evaluations < budget:
        if _holds(evaluate(frozenset([*found, *pool[:step]])), limit):
            high = step
            break
        low, step = step, step * _GALLOP
    while high - low > 1 and evaluate.evaluations < budget:
        middle = (low + high) // 2
        if _holds(evaluate(frozenset([*found, *pool[:middle]])), limit):
            high = middle
        else:
            low = middle
    return high


def linear_scan(items: Iterable[str], evaluate: Journal, limit: float) -> Search:
    """The plain way, for comparison: raise one item at a time and keep those without which the limit breaks."""
    order = list(items)
    kept = set(order)
    without = evaluate(frozenset())
    for item in order:
        if _holds(evaluate(frozenset(kept - {item})), limit):
            kept.discard(item)
    final = evaluate(frozenset(kept))
    return Search(
        tuple(i for i in order if i in kept), final, without, evaluate.evaluations, _holds(final, limit), True
    )


def _holds(drop: float, limit: float) -> bool:
    return drop <= limit  # False for NaN

"""The graph of training events, and the search for a path in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from deploychain.audit.astnames import Scope
from deploychain.audit.events import Event

Guard = tuple[str, bool]
_CALL = re.compile(r"[\w\])]\(")
_PURE_CALL = re.compile(r"\b(len|isinstance|hasattr|bool|int|min|max|is_available|is_enabled)\(")
_MAX_STATES = 6000  # of one search
_BUDGET = 200_000  # of all searches in one graph: hand-written training code needs a few thousand


@dataclass(eq=False)
class Node:
    number: int
    line: int = 0
    events: list[Event] = field(default_factory=list)
    kills: frozenset[str] = frozenset()
    renews: frozenset[str] = frozenset()  # names that are another object each time the path comes here
    succ: list[tuple[Node, tuple[Guard, ...]]] = field(default_factory=list)
    guards: tuple[Guard, ...] = ()
    loops: tuple[int, ...] = ()
    branches: list[tuple[int, int]] = field(default_factory=list)  # node numbers inside each branch of an `if`
    leaves: list[bool] = field(default_factory=list)  # of each branch: it ends with return, continue, break or raise
    once: bool = False  # a condition that holds in one iteration only
    amp: bool = False  # a condition that may ask whether there is a scaler
    skip: bool = False  # a condition that asks whether the step was skipped
    periodic: bool = False  # a condition that holds in every n-th iteration
    sets: dict[str, bool] = field(default_factory=dict)  # names that are True or False from here on


@dataclass
class Graph:
    root: Scope
    nodes: list[Node]
    loop_kinds: dict[int, ast.AST]
    inner_loops: dict[int, int]  # loop -> loop around it
    left: int = _BUDGET
    cut: bool = False  # the function has more statements than a graph takes
    implied: bool = False  # one training step: the loop around it is in another file
    concrete: Scope | None = None  # the class of `self` in the root
    _forgotten: dict[int, frozenset[str]] = field(default_factory=dict)

    @property
    def exhausted(self) -> bool:
        """Some paths were not followed: what was not found may still be there."""
        return self.left <= 0 or self.cut

    @cached_property
    def asked_again(self) -> frozenset[str]:
        """Conditions that a path can meet twice: of two nodes, or of one in a loop. Only these are remembered."""
        askers: dict[str, int] = {}
        for node in self.nodes:
            for text in {t for _, guards in node.succ for t, _ in guards}:
                askers[text] = askers.get(text, 0) + (2 if node.loops else 1)
        return frozenset(t for t, count in askers.items() if count > 1 and _pure(t))

    def forgotten(self, node: Node) -> frozenset[str]:
        """The conditions that mean something else after a node, as it assigns a name in them."""
        if node.number not in self._forgotten:
            self._forgotten[node.number] = frozenset(t for t in self.asked_again if _mentions(t, node.kills))
        return self._forgotten[node.number]

    def events(self, *kinds: str) -> list[tuple[Node, Event]]:
        return [(n, e) for n in self.nodes for e in n.events if e.kind in kinds]


@dataclass(frozen=True)
class Path:
    """A way from one event to another."""

    goal: Event
    node: Node


def search(
    graph: Graph,
    start: Node,
    event: Event,
    goal: Callable[[Event], bool],
    stop: Callable[[Event], bool],
    *,
    strict: bool = False,
    either: Callable[[Node], bool] | None = None,
    subject: str = "",
) -> Path | None:
    """The first event that satisfies `goal` on some path after `event` with no `stop` event in between.

    At an `if` whose outcome is unknown and that holds a stop event in one branch, the path ends, unless `strict`: a
    condition that cannot be compared is given the benefit of the doubt. Where `either` holds for the `if`, a branch
    that holds a goal is followed nevertheless. `subject` is the name that it is about: where that becomes another
    object, the path ends.
    """
    position = start.events.index(event)
    for later in start.events[position + 1 :]:
        if goal(later):
            return Path(later, start)
        if stop(later):
            return None
    if graph.left <= 0:
        return None
    assumed = {t: v for t, v in start.guards if t in graph.asked_again}
    stack: list[tuple[Node, dict[str, bool]]] = [(start, assumed)]
    seen: set[tuple[int, frozenset[Guard]]] = set()
    stops = [n.number for n in graph.nodes if any(stop(e) for e in n.events)]
    goals = [n.number for n in graph.nodes if any(goal(e) for e in n.events)] if either is not None else []
    first = True
    graph.left -= len(graph.nodes) // 50  # looking for the stops is work as well
    while stack and graph.left > 0:
        graph.left -= 1
        node, known = stack.pop()
        state = (node.number, frozenset(known.items()))
        if not first:  # the start itself may be the goal, one iteration later
            if state in seen:
                continue
            seen.add(state)
        if len(seen) > _MAX_STATES:
            return None
        if not first:
            if subject and any(_part_of(subject, name) for name in node.renews):
                continue
            if node.kills and known:
                lost = graph.forgotten(node)
                if not lost.isdisjoint(known):
                    known = {t: v for t, v in known.items() if t not in lost}
            if node.sets:
                known = {**known, **{t: v for t, v in node.sets.items() if t in graph.asked_again}}
            ended = False
            for later in node.events:
                if goal(later):
                    return Path(later, node)
                if stop(later):
                    ended = True
                    break
            if ended:
                continue
        first = False
        live = []
        for target, guards in node.succ:
            if any(known.get(t, v) != v for t, v in guards):
                continue
            live.append((target, guards))
        if len(live) > 1 and node.branches and not strict and not node.once:
            both = either is not None and either(node)
            if not (both and node.periodic):
                live = _doubtful(node, live, stops, goals if both else [])
        for target, guards in live:
            made = known if not guards else {**known, **{t: v for t, v in guards if t in graph.asked_again}}
            stack.append((target, made))
    return None


def _doubtful(
    node: Node, live: list[tuple[Node, tuple[Guard, ...]]], stops: list[int], goals: list[int]
) -> list[tuple[Node, tuple[Guard, ...]]]:
    """Of the ways out of an undecided `if`, those that lead into a branch with a stop event, if there is one.

    A branch that leaves the way that all others go (`continue`) is no reason to think that the others have it too.
    """
    branches = list(zip(node.branches, node.leaves, strict=True))
    inside = [(a, b) for (a, b), leaves in branches if not leaves and any(a <= s < b for s in stops)]
    if not inside or node.skip:
        return live
    inside += [(a, b) for (a, b), _ in branches if any(a <= g < b for g in goals)]
    return [(target, guards) for target, guards in live if any(a <= target.number < b for a, b in inside)]


def _part_of(subject: str, name: str) -> bool:
    return subject == name or subject.startswith((f"{name}.", f"{name}["))


def _pure(text: str) -> bool:
    return not _CALL.search(_PURE_CALL.sub("", text))


def _mentions(text: str, names: frozenset[str]) -> bool:
    for name in names:
        index = text.find(name)
        while index >= 0:
            before = text[index - 1] if index else " "
            after = text[index + len(name)] if index + len(name) < len(text) else " "
            if not (before.isalnum() or before in "_.") and not (after.isalnum() or after == "_"):
                return True
            index = text.find(name, index + 1)
    return False

"""Functions that are one step of a training loop which is not in the file."""

from __future__ import annotations

import ast
import re

from deploychain.audit.paths import Graph
from deploychain.audit.symbols import Symbols
from deploychain.audit.tree import walk

_ONCE = re.compile(r"main|test|demo|check|example|bench|profile|smoke|sanity|once|warm", re.IGNORECASE)
_STEP = re.compile(r"step|batch|iter|update|train|optimi[sz]e", re.IGNORECASE)


def is_a_step(symbols: Symbols, graph: Graph) -> bool:
    """The whole of one training step, in a function that another file or a framework calls for every batch.

    A subclass whose own methods leave out the update() that the step of its base class has is taken as well.
    """
    root = graph.root
    if not isinstance(root.node, ast.FunctionDef) or _ONCE.search(root.name):
        return False
    by_hand = root.name == "training_step" and any(e.framework == "Lightning" for _, e in graph.events("backward"))
    other = graph.concrete if graph.concrete is not root.owner else None
    shorter = other and not any(isinstance(n, ast.Attribute) and n.attr == "update" for n in walk(other.node))
    needed = ("backward", "optimizer-step") if by_hand else ("backward", "scaler-step", *["update"] * (not shorter))
    for kind in needed:
        events = graph.events(kind)
        if not events or any(n.loops for n, _ in events):
            return False
    return (
        root.owner is not None
        or _STEP.search(root.name) is not None
        or any(
            n.id == root.name and isinstance(n.ctx, ast.Load) and getattr(symbols.parent.get(n), "func", None) is not n
            for n in symbols.nodes(ast.Name)
        )
    )

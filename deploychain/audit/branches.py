"""Whether a statement under conditions runs when a program is started as it is written, with its defaults."""

from __future__ import annotations

import ast

from deploychain.audit.amp import Amp
from deploychain.audit.astnames import Scope, last_name
from deploychain.audit.tree import walk


def taken(amp: Amp, node: ast.AST) -> bool | None:
    """True or False where the conditions around a node in its function are decided; None where one is not."""
    child, parent = node, amp.symbols.parent.get(node)
    known: bool | None = True
    while parent is not None and not isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
        if isinstance(parent, ast.If | ast.IfExp) and child is not parent.test and not _about_layers(parent.test):
            answer = holds(amp, parent.test, amp.symbols.scope(parent))
            body = parent.body if isinstance(parent.body, list) else [parent.body]
            if answer is None:
                known = None
            elif answer != any(child is s for s in body):
                return False
        child, parent = parent, amp.symbols.parent.get(parent)
    return known


def holds(amp: Amp, test: ast.expr, scope: Scope) -> bool | None:
    """The answer to a condition that asks for a word, a number or a dtype that the file gives."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = holds(amp, test.operand, scope)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        answers = [holds(amp, value, scope) for value in test.values]
        deciding = isinstance(test.op, ast.Or)
        return deciding if deciding in answers else None if None in answers else not deciding
    answer = amp.truth(test, scope)
    return amp.symbols.decisions.holds(test, scope) if answer is None else answer


def _about_layers(test: ast.expr) -> bool:
    """`if not isinstance(layer, nn.BatchNorm2d)`: some of the layers are made half."""
    called = {last_name(n.func) for n in walk(test) if isinstance(n, ast.Call)}
    return bool(called) and called <= {"isinstance", "type", "len", "list", "parameters"} and "isinstance" in called

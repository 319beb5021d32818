"""What a test says of BatchNorm: whether it asks for it, and whether what comes to a place under it may be one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import last_name
from deploychain.audit.batchnorm import NORMS
from deploychain.audit.symbols import Symbols
from deploychain.audit.tree import walk

_SAYS = re.compile(r"BatchNorm|batch_?norm|running_|^\.?bn\d?\.?$")


def names_batchnorm(test: ast.AST, symbols: Symbols) -> bool:
    """A test that says BatchNorm, itself or by a tuple of classes that it names."""
    parts: list[ast.AST] = [test]
    for node in walk(test):
        if isinstance(node, ast.Call) and last_name(node.func) == "isinstance" and len(node.args) == 2:
            parts += [r.expr for r in symbols.resolve(node.args[1], symbols.scope(node)) if r.expr is not node.args[1]]
    return any(
        (isinstance(n, ast.Name | ast.Attribute) and last_name(n) in NORMS)
        or (isinstance(n, ast.Constant) and isinstance(n.value, str) and _SAYS.search(n.value) is not None)
        for part in parts
        for n in walk(part)
    )


def tested_for(test: ast.AST, symbols: Symbols) -> bool | None:
    """True: the test holds for BatchNorm modules; False: for others only; None: it asks for no kind of module."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = tested_for(test.operand, symbols)
        return None if inner is None else not inner
    if isinstance(test, ast.BoolOp):
        found = [f for f in (tested_for(v, symbols) for v in test.values) if f is not None]
        return None if not found else any(found) if isinstance(test.op, ast.Or) else all(found)
    asks = any(isinstance(n, ast.Call) and last_name(n.func) in ("isinstance", "type") for n in walk(test))
    if not names_batchnorm(test, symbols):
        return False if asks else None
    negated = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn | ast.IsNot | ast.NotEq)
    return not negated or ".find(" in ast.unparse(test)  # `classname.find("BatchNorm") != -1`


def chosen(symbols: Symbols, node: ast.AST) -> bool | None:
    """`if isinstance(m, nn.BatchNorm2d): m.half()`: True where the tests around choose BatchNorm, False where they
    leave it out, None where they say nothing of it: what is no FSDP module may hold BatchNorm or not.
    """
    below: ast.AST | None = node
    while below is not None and not isinstance(below, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        parent = symbols.parent.get(below)
        found: list[bool | None] = []
        if isinstance(parent, ast.If | ast.IfExp) and below is not parent.test:
            body = parent.body if isinstance(parent.body, list) else [parent.body]
            found.append(_holds(symbols, parent.test, below in body))
        if isinstance(parent, ast.ListComp | ast.GeneratorExp):
            found += [_holds(symbols, t, True) for g in parent.generators for t in g.ifs]
        if isinstance(below, ast.stmt):
            found += _left_before(symbols, below, parent)
        known = [f for f in found if f is not None]
        if known:
            return all(known)
        below = parent
    return None


def _holds(symbols: Symbols, test: ast.expr, holds: bool) -> bool | None:
    """Whether what comes here, with a test that held or did not, is BatchNorm for sure, never, or as may be."""
    asked = tested_for(test, symbols)
    if asked is None:
        return None
    return False if asked is not holds else True if names_batchnorm(test, symbols) else None


def _left_before(symbols: Symbols, node: ast.stmt, parent: ast.AST | None) -> Iterator[bool | None]:
    """`if isinstance(m, nn.BatchNorm2d): continue` above, in a loop or in a function."""
    body = getattr(parent, "body", None)
    for above in body[: body.index(node)] if isinstance(body, list) and node in body else ():
        if not isinstance(above, ast.If) or above.orelse or not isinstance(above.body[-1], ast.Continue | ast.Return):
            continue
        if tested_for(above.test, symbols):
            yield False

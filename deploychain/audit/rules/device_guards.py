"""R27: conditions that let an autocast region be entered only on the device that it is for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted, keyword, returns
from deploychain.audit.context import Context
from deploychain.audit.tree import walk

_DEVICE = re.compile(r"cuda|device|gpu|is_available|accelerator", re.IGNORECASE)
_DEEP = 3


def asks_for_device(ctx: Context, place: ast.AST, made: ast.AST) -> bool:
    """Some condition on the way to the region asks for the device: an `if` around it or before it, at the calls of its
    function, or its `enabled`; also by a name or a function that stands for the answer."""
    scope = ctx.symbols.scope(place)
    tests = [(t, scope) for t in _conditions(ctx, place, scope)]
    for site in ctx.symbols.call_sites(scope)[:8]:
        around = ctx.symbols.scope(site)
        tests += [(t, around) for t in _conditions(ctx, site, around)]
    if isinstance(made, ast.Call):
        enabled = keyword(made, "enabled")
        tests += [(enabled, ctx.symbols.scope(made))] if enabled is not None else []
    return any(_asks(ctx, t, s, _DEEP) for t, s in tests)


def _conditions(ctx: Context, node: ast.AST, scope: Scope) -> Iterator[ast.expr]:
    """The tests of the branches that a node is in, and of those before it that leave the function."""
    line = getattr(node, "lineno", 0)
    inner, above = node, ctx.symbols.parent.get(node)
    while above is not None and inner is not scope.node:
        if isinstance(above, ast.If | ast.IfExp | ast.While) and inner is not above.test:
            yield above.test
        inner, above = above, ctx.symbols.parent.get(above)
    for statement in scope.body:
        leaves = isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return | ast.Raise | ast.Continue)
        if isinstance(statement, ast.If) and leaves and statement.lineno < line:
            yield statement.test


def _asks(ctx: Context, test: ast.expr, scope: Scope, depth: int) -> bool:
    if _DEVICE.search(ast.unparse(test)):
        return True
    if not depth:
        return False
    for node in walk(test):
        if isinstance(node, ast.Name | ast.Attribute):
            for binding in ctx.symbols.bindings(dotted(node) or "", scope):
                value = binding.value
                if isinstance(value, ast.Tuple) and binding.place is not None and binding.place < len(value.elts):
                    value = value.elts[binding.place]
                if value is not None and _asks(ctx, value, binding.scope, depth - 1):
                    return True
        elif isinstance(node, ast.Call):
            helper = ctx.symbols.local_function(node.func, scope)
            if helper is not None and any(_asks(ctx, v, helper, depth - 1) for v in returns(helper)):
                return True
    return False

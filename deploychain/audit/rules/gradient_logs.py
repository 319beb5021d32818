"""R07: whether a norm of gradients is only looked at, or limits the update."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from deploychain.audit.astnames import argument, last_name
from deploychain.audit.context import Context
from deploychain.audit.events import Event
from deploychain.audit.values import words

_MEASURES = words(
    "norm vector_norm matrix_norm abs mean std var max min item add_histogram Histogram histc cpu numpy float"
)
_NORM = re.compile(r"^_?(get_)?(total_)?grad(ient)?s?_norm$|^get_total_norm$")
_CLIPS = words("clip_grad_norm_ clip_grad_value_")
_EDITS = words("mul_ div_ copy_ clamp_ _foreach_mul_ _foreach_div_ add_ sub_ masked_fill_")


def only_logged(ctx: Context, clip: Event) -> bool:
    """Nothing is limited: a norm that no gradient is edited with, or a limit of None or infinity."""
    node = clip.node
    if not isinstance(node, ast.Call):
        return False
    leaf = last_name(node.func)
    if leaf in _CLIPS:
        limit = argument(node, 1, "max_norm", "clip_value")
        return limit is not None and _no_limit(ctx, limit, clip)
    if leaf not in _MEASURES and not _NORM.match(leaf):
        return False
    functions = {id(clip.scope)} | {id(ctx.symbols.scope(s)) for s in ctx.symbols.call_sites(clip.scope)}
    return not any(id(ctx.symbols.scope(n)) in functions for n in _edits(ctx))


def _edits(ctx: Context) -> Iterator[ast.AST]:
    """Where gradients are changed."""
    for call in ctx.symbols.calls:
        if last_name(call.func) in _EDITS and "grad" in ast.unparse(call):
            yield call
    for statement in ctx.symbols.nodes(ast.Assign, ast.AugAssign):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if isinstance(target, ast.Attribute) and "grad" in ast.unparse(target):
            yield statement


def _no_limit(ctx: Context, limit: ast.expr, clip: Event) -> bool:
    if isinstance(limit, ast.Constant) and limit.value is None:
        return True
    if isinstance(limit, ast.Call) and last_name(limit.func) == "float" and limit.args:
        limit = limit.args[0]
    if last_name(limit) == "inf":
        return True
    value = ctx.symbols.const(limit, clip.scope)
    if isinstance(value, str):
        return value.lower() in ("inf", "infinity")
    return isinstance(value, int | float) and (math.isinf(value) or value >= 1e8)

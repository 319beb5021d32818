"""Expressions that read the loss scale of a GradScaler, and what a scale is compared with."""

from __future__ import annotations

import ast
import re

from deploychain.audit.astnames import UNKNOWN, Scope, dotted, last_name, leaf, returns
from deploychain.audit.context import Context

_SAME = frozenset({"float", "int", "abs", "round", "item", "cpu", "tensor", "detach"})
_OF_MANY = frozenset({"min", "amin", "mean", "median", "fmean"})
_LOGS = frozenset({"log2"})
SCALER_NAME = re.compile(r"scaler$", re.IGNORECASE)


def scale_read(ctx: Context, expr: ast.expr, scope: Scope, depth: int = 5, seen: set[int] | None = None) -> str:
    """ "scale", "log2" (of the scale), or "" where the expression is neither.

    `seen` holds what was looked at for this question: lists that are filled from each other have many ways round.
    """
    seen = set() if seen is None else seen
    if depth == 0 or id(expr) in seen:
        return ""
    seen.add(id(expr))
    if isinstance(expr, ast.NamedExpr):
        return scale_read(ctx, expr.value, scope, depth - 1, seen)
    if isinstance(expr, ast.Call):
        name = last_name(expr.func)
        inside = expr.args[0] if expr.args else expr.func.value if isinstance(expr.func, ast.Attribute) else None
        if name == "get_scale" and isinstance(expr.func, ast.Attribute):
            return "scale" if is_scaler(ctx, expr.func.value, scope) else ""
        if name in _SAME and inside is not None:
            return scale_read(ctx, inside, scope, depth - 1, seen)
        if name in _OF_MANY and inside is not None:
            many = inside.value if isinstance(inside, ast.Subscript) else inside  # `scales[-100:]`
            return "scale" if _collected(ctx, many, depth, seen) else ""
        if name in _LOGS and inside is not None:
            return "log2" if scale_read(ctx, inside, scope, depth - 1, seen) else ""
        for ref in ctx.symbols.resolve(expr, scope):
            if ref.expr is not expr and (kind := scale_read(ctx, ref.expr, ref.scope, depth - 1, seen)):
                return kind
        return ""
    if isinstance(expr, ast.Attribute) and expr.attr == "_scale":
        return "scale" if is_scaler(ctx, expr.value, scope) else ""
    if isinstance(expr, ast.Subscript) and isinstance(expr.slice, ast.Constant) and expr.slice.value == "scale":
        for ref in ctx.symbols.resolve(expr.value, scope):
            if isinstance(ref.expr, ast.Call) and last_name(ref.expr.func) == "state_dict":
                owner = ref.expr.func
                if isinstance(owner, ast.Attribute) and is_scaler(ctx, owner.value, ref.scope):
                    return "scale"
    if isinstance(expr, ast.Subscript) and isinstance(expr.slice, ast.Constant):  # `stats["scale"]`
        for ref in ctx.symbols.resolve(expr, scope):
            if ref.expr is not expr and (kind := scale_read(ctx, ref.expr, ref.scope, depth - 1, seen)):
                return kind
        return ""
    if isinstance(expr, ast.Attribute) and (method := _property(ctx, expr, scope)) is not None:
        return next((k for v in returns(method) if (k := scale_read(ctx, v, method, depth - 1, seen))), "")
    text = dotted(expr)
    if text is None:
        return ""
    for binding in ctx.symbols.bindings(text, scope):
        if binding.value is None or binding.place is not None:
            continue
        if binding.loop:
            if _collected(ctx, binding.value, depth, seen):
                return "scale"
        elif kind := scale_read(ctx, binding.value, binding.scope, depth - 1, seen):
            return kind
    if isinstance(expr, ast.Name) and ctx.symbols.parameter_scope(text, scope) is not None:
        for ref in ctx.symbols.resolve(expr, scope):
            if ref.expr is not expr and (kind := scale_read(ctx, ref.expr, ref.scope, depth - 1, seen)):
                return kind
    return ""


def _property(ctx: Context, expr: ast.Attribute, scope: Scope) -> Scope | None:
    """The method behind `self.scale` that is decorated as a property."""
    own = isinstance(expr.value, ast.Name) and expr.value.id == "self"
    cls = ctx.symbols.class_of(scope) if own else ctx.symbols.instance_class(expr.value, scope)
    for function in ctx.symbols.functions.get(expr.attr, ()) if cls is not None else ():
        decorators = {last_name(d) for d in getattr(function.node, "decorator_list", [])}
        if function.owner is cls and decorators & {"property", "cached_property"}:
            return function
    return None


def is_scaler(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """A GradScaler, or something that is named like one."""
    if ctx.amp.is_scaler(expr, scope):
        return True
    text = dotted(expr)
    if text is None or not SCALER_NAME.search(leaf(text)):
        return False
    refs = ctx.symbols.resolve(expr, scope)
    return all(not isinstance(r.expr, ast.Call) or _amp_wrapper(r.expr) for r in refs)


def _amp_wrapper(call: ast.Call) -> bool:
    return bool(re.search(r"grad.?scaler|amp|native", last_name(call.func), re.IGNORECASE))


def _collected(ctx: Context, expr: ast.expr, depth: int, seen: set[int]) -> bool:
    """A list that scales are appended to."""
    text = dotted(expr)
    return text is not None and any(
        isinstance(c.func, ast.Attribute)
        and bool(c.args)
        and dotted(c.func.value) == text
        and scale_read(ctx, c.args[0], s, depth - 1, seen) != ""
        for c, s in ctx.calls_named("append")
    )


def number(ctx: Context, expr: ast.expr | None, scope: Scope) -> float | None:
    """The number that an expression stands for, also as an element of a tuple, or inside float(...) or a tensor."""
    if expr is None:
        return None
    if isinstance(expr, ast.Call) and last_name(expr.func) in ("tensor", "float", "full") and expr.args:
        return number(ctx, expr.args[-1], scope)
    value = ctx.symbols.const(expr, scope)
    if value is UNKNOWN and isinstance(expr, ast.Subscript) and isinstance(expr.slice, ast.Constant):
        table = ctx.symbols.const(expr.value, scope)
        if isinstance(table, list) and isinstance(expr.slice.value, int) and expr.slice.value < len(table):
            value = table[expr.slice.value]
    if value is UNKNOWN and (text := dotted(expr)) is not None:  # `self.low, self.high = band`
        bindings = ctx.symbols.bindings(text, scope)
        if len(bindings) == 1 and bindings[0].place is not None and not bindings[0].loop:
            table = ctx.symbols.const(bindings[0].value, bindings[0].scope)
            if isinstance(table, list) and bindings[0].place < len(table):
                value = table[bindings[0].place]
    if value is UNKNOWN and isinstance(expr, ast.IfExp):
        both = [number(ctx, e, scope) for e in (expr.body, expr.orelse)]
        return max((b for b in both if b is not None), default=None) if None not in both else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value

"""R04: the return value of scaler.step says nothing about a skip."""

# ruff: noqa: E501, SIM102  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Ref, Scope, dotted, returns
from deploychain.audit.context import WARNING, Context, Rule
from deploychain.audit.finding import Finding


def check(ctx: Context) -> Iterator[Finding]:
    for call, scope in ctx.calls_named("step"):
        if not (isinstance(call.func, ast.Attribute) and call.args and ctx.amp.is_scaler(call.func.value, scope)):
            continue
        use = _use(ctx, call, scope, 3)
        if use is None:
            continue
        scaler, optimizer = ctx.str(call.func.value), ctx.str(call.args[0])
        yield ctx.finding(
            "R04", use, WARNING,
            f"`{ctx.str(call)}` returns what optimizer.step returns, which is None for a done step and for a skipped one: this "
            "test cannot tell them apart",
            f"before = {scaler}.get_scale()\n{scaler}.step({optimizer})\n{scaler}.update()\n"
            f"skipped = {scaler}.get_scale() < before  # get_scale() waits for the GPU: not on every step",
        )  # fmt: skip


def _use(ctx: Context, call: ast.Call, scope: Scope, depth: int) -> ast.expr | None:
    """Where the result of a call is tested: at once, by its name, or by a caller that it is returned to."""
    found = _tested(ctx, call) or _tested_later(ctx, call, scope)
    if found is not None or depth == 0 or not isinstance(scope.node, ast.FunctionDef):
        return found
    if any(ref.expr is call for value in returns(scope) for ref in _whole(ctx, value, scope)):
        for site in ctx.symbols.call_sites(scope):
            found = found or _use(ctx, site, ctx.symbols.scope(site), depth - 1)
    return found


def _whole(ctx: Context, value: ast.expr, scope: Scope) -> list[Ref]:
    """What a returned expression may be; a name only where it was bound once."""
    name = dotted(value)
    if name is not None and len(ctx.symbols.bindings(name, scope)) != 1:
        return []
    if isinstance(value, ast.Call):
        return [Ref(value, scope)]
    return (
        [Ref(b.value, b.scope) for b in ctx.symbols.bindings(name, scope) if b.value and b.place is None]
        if name
        else []
    )


def _tested(ctx: Context, expr: ast.expr) -> ast.expr | None:
    """The comparison or condition that uses this expression as a truth value."""
    node: ast.AST = expr
    parent = ctx.symbols.parent.get(node)
    while isinstance(parent, ast.NamedExpr) and parent.value is node:
        node, parent = parent, ctx.symbols.parent.get(parent)
    if isinstance(parent, ast.Compare):
        others = [parent.left, *parent.comparators]
        if any(isinstance(o, ast.Constant) and o.value in (None, True, False) for o in others if o is not node):
            return expr
        return None
    if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
        return expr
    if isinstance(parent, ast.If | ast.While | ast.IfExp | ast.Assert) and parent.test is node:
        return expr
    if isinstance(parent, ast.BoolOp):
        return expr
    if isinstance(parent, ast.Match) and any(isinstance(c.pattern, ast.MatchSingleton) for c in parent.cases):
        return expr
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "bool":
        return expr
    return None


def _tested_later(ctx: Context, call: ast.Call, scope: Scope) -> ast.expr | None:
    parent = ctx.symbols.parent.get(call)
    if not (isinstance(parent, ast.Assign) and len(parent.targets) == 1):
        return None
    name = dotted(parent.targets[0])
    if name is None:
        return None
    lines = [getattr(b.node, "lineno", 0) for b in ctx.symbols.bindings(name, scope) if b.node is not parent]
    end = min((line for line in lines if line > call.lineno), default=10**9)
    body = scope.node
    for node in ast.walk(body):
        if isinstance(node, ast.Name | ast.Attribute) and dotted(node) == name and call.lineno < node.lineno < end:
            if isinstance(getattr(node, "ctx", None), ast.Load):
                used = _tested(ctx, node)
                if used is not None:
                    return used
    return None


RULE = Rule(
    id="R04",
    name="skip-detect",
    title="A skipped step is looked for in the return value of scaler.step",
    how="code",
    belief="`scaler.step(optimizer) is None` means that the step was skipped.",
    truth=(
        "step() returns the return value of optimizer.step(), which is None when all is well. Only an optimiser whose step returns "
        "something makes the test work, by luck; a fused one even runs its step hooks on a skip. The sign of a skip is a lower "
        "scale after update()."
    ),
    experiment="The return value of scaler.step on a clean and on a skipped step, and the scale before and after.",
    bad="if scaler.step(optimizer) is None:\n    optimizer.zero_grad()",
    good="before = scaler.get_scale()\nscaler.step(optimizer)\nscaler.update()\nskipped = scaler.get_scale() < before",
    check=check,
    trigger=r"scaler|Scaler",
)

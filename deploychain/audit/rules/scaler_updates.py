"""R28: update() that comes once per optimiser, or not at all where gradients overflow."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from deploychain.audit.astnames import Scope, argument_for, dotted, last_name
from deploychain.audit.context import WARNING, Context
from deploychain.audit.events import Event
from deploychain.audit.finding import Finding
from deploychain.audit.tree import walk
from deploychain.audit.values import words

_OF_A_STEP = words("step update unscale_ clip_grad_norm_ clip_grad_value_ zero_grad parameters get_scale")
_STAGE = re.compile(r"stage|OptState|_per_optimizer_states|unscal", re.IGNORECASE)
_NORM = re.compile(r"grad|(^|_|total|g)norm$", re.IGNORECASE)
_AMP = re.compile(r"amp\b|amp_|fp_?16|scaler|mixed|half", re.IGNORECASE)
_FINITE = words("isfinite isnan isinf")
_NORMS = words("clip_grad_norm_ get_total_norm get_grad_norm grad_norm clip_grad_norm clip_gradients")


def update_per_optimizer(ctx: Context) -> Iterator[Finding]:
    """`for opt in optimizers: scaler.step(opt); scaler.update()`, with nothing in the loop that makes new gradients."""
    for loop in ctx.symbols.nodes(ast.For, ast.ListComp, ast.SetComp, ast.GeneratorExp):
        if isinstance(loop, ast.For):
            target, body = loop.target, list(loop.body)
        else:
            assert isinstance(loop, ast.ListComp | ast.SetComp | ast.GeneratorExp)
            if len(loop.generators) > 1 or loop.generators[0].ifs:
                continue
            target, body = loop.generators[0].target, [ast.Expr(loop.elt)]
        calls = [n for s in body for n in walk(s) if isinstance(n, ast.Call)]
        given = {n.id for n in walk(target) if isinstance(n, ast.Name)}
        if len(calls) == 1:
            calls, body, given = _of_helper(ctx, calls[0], given) or (calls, body, given)
        if not calls or not all(last_name(c.func) in _OF_A_STEP for c in calls):
            continue
        own = [
            c for c in calls if isinstance(c.func, ast.Attribute) and dotted(c.func.value) not in given
            and ctx.amp.is_scaler(c.func.value, ctx.symbols.scope(c))
            and ctx.amp.scaler_state(c.func.value, ctx.symbols.scope(c)) is not False
        ]  # fmt: skip
        steps = any(last_name(c.func) == "step" and c.args and _names(c.args[0]) & given for c in own)
        update = next((c for c in own if last_name(c.func) == "update"), None)
        if steps and update is not None and not _picks_one(body, given):
            yield ctx.finding(
                "R28", update, WARNING,
                "update() runs after each optimiser: it may change the scale, and the gradients of the optimisers that follow are then divided "
                "by another scale than they were multiplied with",
                f"for optimizer in optimizers:\n    scaler.step(optimizer)\n{ctx.str(update)}  # once, after the loop",
            )  # fmt: skip


def _of_helper(ctx: Context, call: ast.Call, given: set[str]) -> tuple[list[ast.Call], list[ast.stmt], set[str]] | None:
    """The calls of the function that a loop calls for each, and its parameters for what the loop goes through."""
    helper = ctx.symbols.local_function(call.func, ctx.symbols.scope(call))
    if helper is None or not isinstance(helper.node, ast.FunctionDef):
        return None
    got = {p for p in helper.parameters if (a := argument_for(call, helper, p)) is not None and _names(a) & given}
    calls = [n for n in walk(helper.node) if isinstance(n, ast.Call)]
    return calls, list(helper.node.body), got


def _names(expr: ast.AST) -> set[str]:
    return {n.id for n in walk(expr) if isinstance(n, ast.Name)}


def _picks_one(body: Sequence[ast.stmt], given: set[str]) -> bool:
    """`if i != which: continue`: of several optimisers the loop steps one."""
    return any(
        isinstance(n, ast.Break) or (isinstance(n, ast.If) and bool(_names(n.test) & given))
        for s in body
        for n in walk(s)
    )


def asks_stage(ctx: Context, unscale: Event) -> bool:
    """A condition around the call asks what was done already: of the optimiser's state in the scaler, of a flag, or of
    a table of one's own under the optimiser."""
    above = ctx.symbols.parent.get(unscale.node)
    call = unscale.node
    key = ast.unparse(call.args[0]) if isinstance(call, ast.Call) and call.args else "?"
    while above is not None and above is not unscale.scope.node:
        if isinstance(above, ast.If):
            texts = [ast.unparse(above.test)]
            for name in (n for n in walk(above.test) if isinstance(n, ast.Name | ast.Attribute)):
                bindings = ctx.symbols.bindings(dotted(name) or "", unscale.scope)
                texts += [ast.unparse(b.value) for b in bindings if b.value is not None]
            if any(_STAGE.search(t) or f"[{key}]" in t or f"id({key})" in t or f".get({key}" in t for t in texts):
                return True
        above = ctx.symbols.parent.get(above)
    return False


def stuck_scale(ctx: Context) -> Iterator[Finding]:
    """`if not torch.isfinite(norm): continue` before step and update: the scale is never lowered."""
    if not any(w in ctx.text for w in _FINITE) or (not ctx.amp.scaler_calls and "scaler" not in ctx.text.lower()):
        return
    if not any(e.scaled is True and not e.framework for g in ctx.graphs for _, e in g.events("backward")):
        return
    for node in ctx.symbols.nodes(ast.If):
        scope = ctx.symbols.scope(node)
        asked = _asks_gradients(ctx, node.test, scope)
        if asked is None or not isinstance(scope.node, ast.FunctionDef | ast.Module) or _without_amp(ctx, node):
            continue
        lost, kept = (node.body, node.orelse) if asked == "bad" else (node.orelse, node.body)
        line = node.lineno
        later = _scaler_calls(
            ctx, [n for n in walk(scope.node) if getattr(n, "lineno", 0) > (node.end_lineno or line)], scope
        )
        before = _scaler_calls(ctx, [n for n in walk(scope.node) if getattr(n, "lineno", 0) < line], scope)
        if "unscale_" in before or _scaler_calls(ctx, _inside(ctx, lost), scope) & {"update", "step"}:
            continue
        leaves = bool(lost) and isinstance(lost[-1], ast.Continue | ast.Return)
        inside = _scaler_calls(ctx, _inside(ctx, kept), scope)
        if (leaves and {"step", "update"} <= later) or ({"step", "update"} <= inside and not later & {"update"}):
            yield ctx.finding(
                "R28", node, WARNING,
                "where the gradients are not finite the batch is left without step and update(): the scale is never "
                "lowered, so the next batch overflows at the same scale, and training stands still",
                "scaler.step(optimizer)  # skips by itself where gradients are not finite\nscaler.update()  # and this lowers the scale",
            )  # fmt: skip


def _asks_gradients(ctx: Context, test: ast.expr, scope: Scope) -> str | None:
    """ "bad" or "good": what the gradients, or their norm, are where the test holds."""
    for call in walk(test):
        if not isinstance(call, ast.Call) or last_name(call.func) not in _FINITE:
            continue
        asked = call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else call
        if not _of_gradients(ctx, asked, scope):
            continue
        turned = last_name(call.func) != "isfinite"
        above: ast.AST | None = call
        while above is not None and above is not ctx.symbols.parent.get(test):
            turned ^= isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not | ast.Invert)
            above = ctx.symbols.parent.get(above)
        return "bad" if turned else "good"
    return None


def _of_gradients(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    for node in walk(expr):
        if isinstance(node, ast.Attribute) and node.attr == "grad":
            return True
        if isinstance(node, ast.Name):
            values = [b.value for b in ctx.symbols.bindings(node.id, scope) if b.value is not None]
            if any(isinstance(v, ast.Call) and last_name(v.func) in _NORMS for v in values):
                return True
            if not values and _NORM.search(node.id) and "loss" not in node.id:
                return True
    return False


def _inside(ctx: Context, body: Sequence[ast.stmt]) -> list[ast.AST]:
    """The nodes of a block, and of the functions of the file that it calls."""
    found = [n for s in body for n in walk(s)]
    for call in [n for n in found if isinstance(n, ast.Call)]:
        called = ctx.symbols.local_function(call.func, ctx.symbols.scope(call))
        found += list(walk(called.node)) if called is not None else []
    return found


def _scaler_calls(ctx: Context, nodes: Sequence[ast.AST], scope: Scope) -> set[str]:
    return {
        n.func.attr
        for n in nodes
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr in ("step", "update", "unscale_")
        and ctx.amp.is_scaler(n.func.value, scope)
        and ctx.amp.scaler_state(n.func.value, scope) is not False
    }


def _without_amp(ctx: Context, node: ast.AST) -> bool:
    """In the branch of an `if` for training without a scaler."""
    inner, above = node, ctx.symbols.parent.get(node)
    while above is not None and not isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        if isinstance(above, ast.If):
            text = ast.unparse(above.test)
            off = "not " in text or "is None" in text
            if _AMP.search(text) and (inner in above.orelse) is not off:
                return True
        inner, above = above, ctx.symbols.parent.get(above)
    return False

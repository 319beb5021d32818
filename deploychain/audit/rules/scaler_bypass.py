"""R28: steps and backward passes that the scaler does not see, or not in the state that it takes them to be in."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.amp import PLAIN_SCALERS
from deploychain.audit.astnames import argument, last_name
from deploychain.audit.conditions import asks_for_amp
from deploychain.audit.context import ERROR, WARNING, Context
from deploychain.audit.events import Event
from deploychain.audit.finding import Finding
from deploychain.audit.paths import Graph, Node, search
from deploychain.audit.values import words

Found = list[tuple[str, Finding, ast.AST]]
# Their update is the same for gradients that are all multiplied by one number, up to eps.
_SCALE_INVARIANT = words(
    "Adam AdamW NAdam RAdam Adamax Adagrad Adadelta RMSprop Rprop SparseAdam Lion Adafactor FusedAdam Adam8bit AdamW8bit "
    "PagedAdamW8bit LAMB Lamb FusedLAMB LARS AdaBelief Prodigy SOAP"
)


def is_live(ctx: Context, event: Event) -> bool:
    if isinstance(event.node, ast.Call) and isinstance(event.node.func, ast.Attribute):
        return ctx.amp.scaler_state(event.node.func.value, event.scope) is not False
    return True


def past_the_scaler(ctx: Context, graph: Graph) -> Found:
    return [*_plain_steps(ctx, graph), *_closures(ctx, graph), *_stale_unscale(ctx, graph)]


def _plain_steps(ctx: Context, graph: Graph) -> Found:
    """optimizer.step() on the gradients of a scaled backward: the scaler never gets to divide, or to skip."""
    found: Found = []
    for node, event in graph.events("backward"):
        if event.scaled is not True or event.framework:
            continue
        path = search(
            graph, node, event,
            goal=lambda e: e.kind == "optimizer-step",
            stop=lambda e: e.kind in ("scaler-step", "opaque") or (e.kind == "unscale" and e.key == "*"),
        )  # fmt: skip
        if path is None or not isinstance(path.goal.node, ast.Call) or _own_check(graph, node, path.node):
            continue
        name = ctx.str(path.goal.node.func)
        optimizer = name.rpartition(".")[0]
        invariant = not graph.events("clip") and _is_invariant(ctx, path.goal)
        found.append(("past", ctx.finding(
            "R28", path.goal.node, WARNING if invariant else ERROR,
            f"`{name}` instead of scaler.step after a scaled backward: " + (
                "this optimiser's update does not depend on the scale, but a step with inf or NaN in the gradients is not skipped"
                if invariant else
                "the gradients are still multiplied by the scale (65536), unless unscale_ came first, and a step with inf or NaN in them is "
                "not skipped"
            ),
            f"scaler.step({optimizer})\nscaler.update()",
        ), path.goal.node))  # fmt: skip
    return found


def _is_invariant(ctx: Context, step: Event) -> bool:
    """The stepped optimiser is known, and its update does not depend on a factor of the gradients."""
    assert isinstance(step.node, ast.Call) and isinstance(step.node.func, ast.Attribute)
    made = ctx.symbols.resolve(step.node.func.value, step.scope)
    return all(isinstance(r.expr, ast.Call) and last_name(r.expr.func) in _SCALE_INVARIANT for r in made)


def _own_check(graph: Graph, backward: Node, step: Node) -> bool:
    """The step is that of the FP32 branch, or after unscale_ a condition of its own decides on it."""
    if any(asks_for_amp(text) for text, _ in set(step.guards) - set(backward.guards)):
        return True
    between = [n for n, _ in graph.events("unscale") if backward.number < n.number < step.number]
    return bool(between) and bool(set(step.guards) - set(backward.guards))


def _closures(ctx: Context, graph: Graph) -> Found:
    """scaler.step(optimizer, closure): the closure's backward would run where the scaler cannot see it."""
    found: Found = []
    for _, event in graph.events("scaler-step"):
        call = event.node
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)) or not is_live(ctx, event):
            continue
        closure = argument(call, 1, "closure")
        written = isinstance(closure, ast.Lambda) or (
            isinstance(closure, ast.Name) and closure.id in ctx.symbols.functions
        )
        made = ctx.symbols.resolve(call.func.value, event.scope)  # some projects have a scaler of their own for this
        if not written or not all(
            isinstance(r.expr, ast.Call) and ctx.symbols.qual(r.expr.func, r.scope) in PLAIN_SCALERS for r in made
        ):
            continue
        found.append(("closure", ctx.finding(
            "R28", call, ERROR,
            "a closure cannot go through scaler.step: as a keyword it raises \"Closure use is not currently supported if GradScaler is "
            "enabled\", and as an argument the optimiser steps on gradients that are still scaled",
            f"call the closure first, then {event.detail or 'scaler'}.step({event.key}); LBFGS needs training without a scaler",
        ), call))  # fmt: skip
    return found


def _stale_unscale(ctx: Context, graph: Graph) -> Found:
    """A scaled backward after unscale_, before the step; unscale_ after the step."""
    found: Found = []
    if len({e.key for _, e in graph.events("scaler-step")}) != 1:
        return found  # the backward may be for the parameters of another optimiser
    for node, event in graph.events("unscale", "scaler-step"):
        if (
            event.key == "*"
            or not is_live(ctx, event)
            or last_name(getattr(event.node, "func", event.node)) not in ("unscale_", "step")
        ):
            continue
        if event.kind == "scaler-step":
            path = search(
                graph, node, event,
                goal=lambda e, event=event: e.kind == "unscale" and e.key == event.key,  # type: ignore[misc]
                stop=lambda e: e.kind in ("update", "opaque", "backward"), subject=event.key,
            )  # fmt: skip
            if path is not None:
                found.append(("late", ctx.finding(
                    "R28", path.goal.node, ERROR,
                    "unscale_ after step and before update(): RuntimeError \"unscale_() is being called after step()\"",
                    f"{ctx.str(path.goal.node)}\n{ctx.str(event.node)}",
                ), path.goal.node))  # fmt: skip
            continue
        path = search(
            graph, node, event,
            goal=lambda e: e.kind == "backward" and e.scaled is True and not e.framework,
            stop=lambda e: e.kind in ("scaler-step", "optimizer-step", "update", "unscale", "opaque"), subject=event.key,
        )  # fmt: skip
        if path is None or not search(
            graph, path.node, path.goal,
            goal=lambda e, event=event: e.kind == "scaler-step" and e.key == event.key,  # type: ignore[misc]
            stop=lambda e: e.kind in ("update", "unscale", "opaque"), strict=True,
        ):  # fmt: skip
            continue
        found.append(("stale", ctx.finding(
            "R28", path.goal.node, ERROR,
            f"a scaled backward after unscale_({event.key}) (line {event.node.lineno}) and before update(): step does not unscale again, so "
            "these gradients stay multiplied by the scale (65536)",
            "call unscale_ after the last backward of the batch, and update() before the next",
        ), path.goal.node))  # fmt: skip
    return found


def never_called(ctx: Context) -> Iterator[Finding]:
    """`scaler.scale(loss).backward` without the parentheses."""
    for node in ctx.symbols.nodes(ast.Attribute):
        if node.attr != "backward" or not isinstance(ctx.symbols.parent.get(node), ast.Expr):
            continue
        base = node.value
        if (
            isinstance(base, ast.Call)
            and isinstance(base.func, ast.Attribute)
            and base.func.attr == "scale"
            and ctx.amp.is_scaler(base.func.value, ctx.symbols.scope(node))
        ):
            yield ctx.finding(
                "R28", node, ERROR,
                "the method is named and not called: there are no gradients, and step raises \"No inf checks were recorded for this "
                "optimizer\"",
                f"{ctx.str(node)}()",
            )  # fmt: skip

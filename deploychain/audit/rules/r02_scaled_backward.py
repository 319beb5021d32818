"""R02: with a GradScaler, backward runs on scaler.scale(loss)."""

# ruff: noqa: E501, SIM102  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted
from deploychain.audit.callees import callers
from deploychain.audit.context import ERROR, Context, Rule
from deploychain.audit.events import Event
from deploychain.audit.finding import Finding
from deploychain.audit.paths import Graph, Node, search
from deploychain.audit.rules.unscaled_training import without_scaler


def check(ctx: Context) -> Iterator[Finding]:
    done: set[int] = set()
    for graph in ctx.graphs:
        if not any(_enabled(ctx, e) for _, e in graph.events("scaler-step")):
            continue
        for node, event in graph.events("backward", "gradients"):
            by_framework = bool(event.framework) and event.detail == "plain"
            if id(event.node) in done or not (
                by_framework or (event.scaled is False and not _alternative(graph, node))
            ):
                continue
            path = search(
                graph, node, event,
                goal=lambda e: e.kind == "scaler-step" and _enabled(ctx, e),
                stop=lambda e: e.kind in ("optimizer-step", "opaque"),
                either=lambda n: True,
            )  # fmt: skip
            if path is None or (by_framework and not _own_scaler(ctx, path.goal)):
                continue
            done.add(id(event.node))
            scaler = path.goal.detail if path.goal.detail != "*" else "scaler"
            shown = _loss_text(ctx, event)
            what = f"{shown}.backward()" if event.kind == "backward" and not by_framework else ctx.str(event.node)
            yield ctx.finding(
                "R02", event.node, ERROR,
                f"`{what}` is not scaled, but `{scaler}.step` follows: it raises \"Attempted step but _scale is "
                "None\" the first time, and where something else was scaled before, it divides these gradients by the scale "
                "(65536) and nothing is learnt",
                f"{scaler}.scale({shown}).backward()" if what.endswith(".backward()") else f"{scaler}.scale({shown})",
            )  # fmt: skip
    yield from _frameworks(ctx, done)
    yield from without_scaler(ctx)


def _loss_text(ctx: Context, event: Event) -> str:
    node = event.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
        if not node.args or dotted(node.func.value) not in ("torch.autograd", "autograd"):
            return ctx.str(node.args[0] if event.framework and node.args else node.func.value)
    if isinstance(node, ast.Call) and node.args:
        return ctx.str(node.args[0])
    return "loss"


def _enabled(ctx: Context, event: Event) -> bool:
    node = event.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return ctx.amp.scaler_state(node.func.value, event.scope) is not False
    return True


def _own_scaler(ctx: Context, step: Event) -> bool:
    """The step belongs to a scaler that this file makes, not to that of the framework."""
    node = step.node
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and any(
        ctx.amp.is_scaler_call(r.expr, r.scope) for r in ctx.symbols.resolve(node.func.value, step.scope)
    )  # fmt: skip


def _alternative(graph: Graph, node: Node) -> bool:
    """The other branch of an `if` around this backward has a scaled one: two roads, the right one each. That is no
    excuse where one run takes both: `if (i + 1) % accum == 0`."""
    for branch in graph.nodes:
        if branch.periodic:
            continue
        for position, (start, end) in enumerate(branch.branches):
            if start <= node.number < end:
                for other, (first, last) in enumerate(branch.branches):
                    if other != position and any(
                        e.kind == "backward" and e.scaled is not False
                        for n in graph.nodes[first:last]
                        for e in n.events
                    ):
                        return True
    return False


def _frameworks(ctx: Context, done: set[int]) -> Iterator[Finding]:
    """loss.backward() where Accelerate, Fabric or Lightning with manual optimisation does the scaling."""
    framework = ctx.amp.framework
    for graph in ctx.graphs:
        for _, event in graph.events("backward"):
            if event.scaled is not False or id(event.node) in done:
                continue
            right = ""
            if not _under_framework(ctx, graph, event):
                continue
            if framework.accelerate == "fp16" and not ctx.amp.scaler_calls:
                right = "accelerator.backward({loss})"
            elif framework.fabric == "fp16" and not ctx.amp.scaler_calls:
                right = "fabric.backward({loss})"
            elif framework.lightning == "fp16" and _in_training_step(ctx, event.scope):
                right = "self.manual_backward({loss})"
            if right:
                done.add(id(event.node))
                shown = _loss_text(ctx, event)
                yield ctx.finding(
                    "R02", event.node, ERROR,
                    f"`{shown}.backward()` goes round the loss scaling that fp16 training has here: the gradients are not "
                    "scaled up, but the step divides them by the scale or fails",
                    right.format(loss=shown),
                )  # fmt: skip


def _in_training_step(ctx: Context, scope: Scope) -> bool:
    """A training_step of Lightning, or what it calls."""
    return any(
        s.name == "training_step" and ctx.amp.framework.ambient(s) for s in (scope, *callers(ctx.symbols, scope))
    )


def _under_framework(ctx: Context, graph: Graph, event: Event) -> bool:
    """The model or optimiser of this backward went through prepare()/setup(), or the method belongs to a framework class."""
    if event.scope.owner is not None and ctx.amp.framework.ambient(event.scope) is not None:
        return True
    places = {ctx.symbols.module}
    around: Scope | None = event.scope
    while around is not None:
        places.add(around)
        around = around.parent
    if event.scope.owner is not None or not event.scope.parameters:
        places.add(graph.root)
    for call, scope in ctx.calls_named("prepare", "setup", "accumulate", "setup_module", "autocast", "backward"):
        if scope in places and isinstance(call.func, ast.Attribute):
            if ctx.amp.framework.kind(call.func.value, scope):
                return True
    return _is_given_prepared(ctx, event.scope) or _in_training_step(ctx, event.scope)


def _is_given_prepared(ctx: Context, function: Scope, depth: int = 3) -> bool:
    """A caller hands over what went through prepare() or setup(): `update(model, optimizer, batch)`."""
    for site in ctx.symbols.call_sites(function)[:4]:
        scope = ctx.symbols.scope(site)
        for given in (*site.args, *(k.value for k in site.keywords)):
            text = dotted(given) or ""
            if any(_prepares(ctx, b.value, b.scope) for b in ctx.symbols.bindings(text, scope)):
                return True
            caller = ctx.symbols.parameter_scope(text, scope)
            if caller is not None and depth and _is_given_prepared(ctx, caller, depth - 1):
                return True
    return False


def _prepares(ctx: Context, made: ast.expr | None, scope: Scope) -> bool:
    return (
        isinstance(made, ast.Call)
        and isinstance(made.func, ast.Attribute)
        and made.func.attr in ("prepare", "setup", "setup_module", "prepare_model", "prepare_optimizer")
        and bool(ctx.amp.framework.kind(made.func.value, scope))
    )


RULE = Rule(
    id="R02",
    name="scaled-backward",
    title="backward() without scaler.scale(), but scaler.step() after it",
    how="code",
    belief="Guides show `loss.backward()` followed by `scaler.step(optimizer)`; some say that AMP inserts the scaling by itself.",
    truth=(
        "autocast and GradScaler are separate, and nothing is inserted. scaler.step without scaler.scale raises an AssertionError "
        "in the first iteration; later the optimiser sees the gradient divided by the scale, about 1/65536 of it."
    ),
    experiment="One step with and without scaler.scale: the exception, then the size of the update.",
    bad="loss.backward()\nscaler.step(optimizer)\nscaler.update()",
    good="scaler.scale(loss).backward()\nscaler.step(optimizer)\nscaler.update()",
    check=check,
    trigger=r"autocast|scaler|Scaler|accelerat|fabric|Fabric|16-mixed|precision=16",
)

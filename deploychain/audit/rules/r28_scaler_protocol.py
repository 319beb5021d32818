"""R28: one scaler.step per optimiser and one scaler.update per effective batch."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Ref, Scope, argument_for, dotted, keyword, last_name
from deploychain.audit.context import ERROR, NOTE, Context, Rule
from deploychain.audit.elements import elements
from deploychain.audit.events import Event
from deploychain.audit.finding import Finding
from deploychain.audit.paths import Graph, Node, search
from deploychain.audit.rules.idle_optimizers import idle_optimizers, without_gradients
from deploychain.audit.rules.scaler_bypass import Found, is_live, never_called, past_the_scaler
from deploychain.audit.rules.scaler_lifetime import one_per_batch
from deploychain.audit.rules.scaler_state import checkpoints
from deploychain.audit.rules.scaler_updates import asks_stage, stuck_scale, update_per_optimizer
from deploychain.audit.tree import walk


def check(ctx: Context) -> Iterator[Finding]:
    done: set[tuple[str, int]] = set()
    for graph in ctx.graphs:
        for kind, finding, node in (
            *_missing_update(ctx, graph), *_early_update(ctx, graph), *_double_unscale(ctx, graph), *_scheduler(ctx, graph),
            *_step_before_backward(ctx, graph), *past_the_scaler(ctx, graph),
        ):  # fmt: skip
            if (kind, id(node)) not in done:
                done.add((kind, id(node)))
                yield finding
    yield from _never_updated(ctx, done)
    yield from update_per_optimizer(ctx)
    yield from stuck_scale(ctx)
    yield from never_called(ctx)
    yield from one_per_batch(ctx)
    yield from checkpoints(ctx)
    yield from without_gradients(ctx)
    yield from idle_optimizers(ctx)


def _missing_update(ctx: Context, graph: Graph) -> Found:
    """Two steps of one optimiser with no update between them."""
    found: Found = []
    for node, event in graph.events("scaler-step"):
        if not is_live(ctx, event):
            continue
        path = search(
            graph, node, event,
            goal=lambda e, event=event: e.kind == "scaler-step" and e.key == event.key and e.key != "*",  # type: ignore[misc]
            stop=lambda e: e.kind in ("update", "opaque"),
            subject=event.key,
        )  # fmt: skip
        if path is None:
            continue
        scaler = event.detail if event.detail != "*" else "scaler"
        found.append(("update", ctx.finding(
            "R28", event.node, ERROR,
            f"no {scaler}.update() between two steps of `{event.key}`: the second raises \"step() has already been called since the last "
            "update()\"",
            f"{ctx.str(event.node)}\n{scaler}.update()",
        ), event.node))  # fmt: skip
    return found


def _same(ctx: Context, first: Event, second: Event) -> bool:
    """One optimiser: by its key, or `opts[0]` and each of `opts`."""
    if first.key == second.key:
        return True
    each = elements(ctx.symbols, second.node.args[0], second.scope) if isinstance(second.node, ast.Call) else []
    return any(first.key.startswith(f"{dotted(r.expr)}[") for r in each if dotted(r.expr) is not None)


def _never_updated(ctx: Context, done: set[tuple[str, int]]) -> Iterator[Finding]:
    """A whole training step, backward and step, of a scaler made in this file, and no update() anywhere in it."""
    if not ctx.amp.scaler_calls or any(kind == "update" for kind, _ in done):
        return
    if any(last_name(c.func) == "update" and ctx.amp.is_scaler(c.func.value, ctx.symbols.scope(c))
           for c in ctx.symbols.calls if isinstance(c.func, ast.Attribute)):  # fmt: skip
        return
    for graph in ctx.graphs:
        steps = [e for _, e in graph.events("scaler-step") if is_live(ctx, e) and not e.framework]
        if not steps or graph.events("opaque") or graph.events("update"):
            continue
        if any(e.scaled is True and not e.framework for _, e in graph.events("backward")):
            scaler = steps[0].detail if steps[0].detail != "*" else "scaler"
            yield ctx.finding(
                "R28", steps[0].node, ERROR,
                f"{scaler}.update() is called nowhere in this file: the second step raises \"step() has already been called since the last "
                "update()\"",
                f"{ctx.str(steps[0].node)}\n{scaler}.update()",
            )  # fmt: skip
            return


def _early_update(ctx: Context, graph: Graph) -> Found:
    """update() on a path from backward that made no step: once per micro-batch."""
    found: Found = []
    if not graph.events("scaler-step"):
        return found
    for node, event in graph.events("backward"):
        if event.scaled is not True or not node.loops:
            continue
        path = search(
            graph, node, event,
            goal=lambda e: e.kind == "update" and is_live(ctx, e),
            stop=lambda e: e.kind in ("scaler-step", "unscale", "opaque", "backward"),
            strict=True,
        )  # fmt: skip
        if path is None or not node.loops or path.node.loops[: len(node.loops)] != node.loops:
            continue
        if not _step_in_loop(graph, node) or any(
            "grad" in t for n, _ in graph.events("scaler-step") for t, _ in n.guards
        ):
            continue  # `if has_grads(opt): scaler.step(opt)` for each of several
        found.append(("early", ctx.finding(
            "R28", path.goal.node, ERROR,
            "update() is reached without a step since the last one (it runs once per micro-batch): \"No inf checks were recorded prior to "
            "update\"",
            "put scaler.step(optimizer) and scaler.update() under the same condition, once per effective batch",
        ), path.goal.node))  # fmt: skip
    return found


def _step_in_loop(graph: Graph, node: Node) -> bool:
    return any(n.loops[:1] == node.loops[:1] for n, _ in graph.events("scaler-step"))


def _double_unscale(ctx: Context, graph: Graph) -> Found:
    found: Found = []
    for node, event in graph.events("unscale"):
        if event.key == "*" or not is_live(ctx, event):
            continue
        if isinstance(event.node, ast.Call) and last_name(event.node.func) != "unscale_":
            continue
        path = search(
            graph, node, event,
            goal=lambda e, event=event: e.kind == "unscale" and isinstance(e.node, ast.Call) and _same(ctx, event, e)  # type: ignore[misc]
            and last_name(e.node.func) == "unscale_",
            stop=lambda e: e.kind in ("update", "opaque"),
            strict=True, subject=event.key,
        )  # fmt: skip
        if path is None or any(" in " in text for text, _ in path.node.guards) or asks_stage(ctx, path.goal):
            continue  # `if id(optimizer) not in done`
        again = "a second time" if path.goal.node is not event.node else "again in the next iteration"
        found.append(("unscale", ctx.finding(
            "R28", path.goal.node, ERROR,
            f"unscale_({event.key}) is called {again} before update(): RuntimeError \"unscale_() has already been called on this optimizer "
            "since the last update()\"",
            "call unscale_ once per effective batch, under the same condition as step and update",
        ), path.goal.node))  # fmt: skip
    return found


def _scheduler(ctx: Context, graph: Graph) -> Found:
    """A per-step scheduler that also counts skipped steps."""
    found: Found = []
    for node, event in graph.events("scaler-step"):
        live = is_live(ctx, event) or _off_by_default(ctx, event)
        if not live or not (node.loops or _is_public_step(ctx, graph)):
            continue
        path = search(
            graph, node, event,
            goal=lambda e: e.kind == "sched-step" and not e.detail,
            stop=lambda e: e.kind in ("backward", "opaque"),
            strict=True,
        )  # fmt: skip
        if path is None or _batch(graph, path.node) != _batch(graph, node) or _skip_guard(ctx, path.node, path.goal):
            continue
        scaler = event.detail if event.detail != "*" else "scaler"
        found.append(("scheduler", ctx.finding(
            "R28", path.goal.node, NOTE,
            f"`{ctx.str(path.goal.node)}` also runs after a skipped step: the schedule gets ahead of the optimiser (by the 5 to 10 skips of "
            "the first steps), and torch warns that lr_scheduler.step() came before optimizer.step()",
            f"before = {scaler}.get_scale()\n{ctx.str(event.node)}\n{scaler}.update()\nif {scaler}.get_scale() >= before:\n    "
            f"{ctx.str(path.goal.node)}",
        ), path.goal.node))  # fmt: skip
    return found


def _off_by_default(ctx: Context, event: Event) -> bool:
    """`GradScaler(enabled=use_amp)` of a function with `use_amp=False` that nothing in the file calls: others turn it on."""
    if not (isinstance(event.node, ast.Call) and isinstance(event.node.func, ast.Attribute)):
        return False
    for ref in ctx.symbols.resolve(event.node.func.value, event.scope):
        if not isinstance(ref.expr, ast.Call) or not ctx.amp.is_scaler_call(ref.expr, ref.scope):
            continue
        value, scope = keyword(ref.expr, "enabled"), ref.scope
        bindings = ctx.symbols.bindings(dotted(value) or "", scope) if isinstance(value, ast.Attribute) else []
        if len(bindings) == 1 and not bindings[0].loop and bindings[0].place is None:
            value, scope = bindings[0].value, bindings[0].scope
        if not isinstance(value, ast.Name) or ctx.symbols.bindings(value.id, scope):
            continue
        function = ctx.symbols.parameter_scope(value.id, scope)
        if function is None or ctx.symbols.default(value.id, scope) is None:
            continue
        own = function.owner if function.name == "__init__" else None
        if not (ctx.symbols.constructions(own) if own is not None else ctx.symbols.call_sites(function)):
            return True
    return False


def _is_public_step(ctx: Context, graph: Graph) -> bool:
    """`def step(self)` next to `def backward(self, loss)`: the loop that calls both is in another file."""
    root = graph.root
    return root.owner is not None and bool(graph.events("update")) and any(
        e.scaled is True for g in ctx.graphs if g.root.owner is root.owner for _, e in g.events("backward")
    )  # fmt: skip


def _batch(graph: Graph, node: Node) -> tuple[int, ...]:
    """The loops around a node that make gradients; those over optimisers or schedulers don't count."""
    trained = {loop for n, _ in graph.events("backward", "opaque") for loop in n.loops}
    return tuple(loop for loop in node.loops if loop in trained)


_SKIP_WORDS = ("scale()", "skip", "finite")


def _skip_guard(ctx: Context, node: Node, event: Event) -> bool:
    """The scheduler's condition asks about the scale or a skip."""
    above = ctx.symbols.parent.get(event.node)
    while above is not None and above is not event.scope.node:
        if isinstance(above, ast.If) and _asks_a_helper(ctx, above.test, event.scope):
            return True
        above = ctx.symbols.parent.get(above)
    for text, _ in node.guards:
        low = text.lower()
        if (
            "scale" in low
            or "skip" in low
            or "overflow" in low
            or "inf" in low
            or "finite" in low
            or "_step_count" in low
        ):
            return True
        if any(_asks_a_helper(ctx, given, where) for given, where in _given(ctx, text, event.scope)):
            return True
        for binding in ctx.symbols.bindings(text, event.scope):
            if binding.value is not None:
                if _of_a_step(ctx, binding.value, binding.scope):
                    return True
                value = ast.unparse(binding.value).lower()
                if "scale" in value or "skip" in value or "finite" in value:
                    return True
    return False


def _given(ctx: Context, name: str, scope: Scope) -> Iterator[Ref]:
    """What calls give for a parameter: `self.schedule(self.optimise(loss))` of `def schedule(self, stepped)`."""
    function = ctx.symbols.parameter_scope(name, scope)
    for call in ctx.symbols.call_sites(function) if function is not None else ():
        argument = argument_for(call, function, name) if function is not None else None
        if argument is not None:
            yield Ref(argument, ctx.symbols.scope(call))


def _asks_a_helper(ctx: Context, test: ast.expr, scope: Scope) -> bool:
    """`if self.optimizer_step():` of a method that returns whether the scale held, or what the step returned.

    Also by name: `applied = self.optimizer_step()`, then `if applied:`.
    """
    if _of_a_step(ctx, test, scope):
        return True
    symbols = ctx.symbols
    asked = [n for n in walk(test) if isinstance(n, ast.Call | ast.Name | ast.Attribute)]
    refs = [r for n in asked for r in symbols.resolve(n, scope)]
    if any(_of_a_step(ctx, *r) or any(w in ast.unparse(r.expr).lower() for w in _SKIP_WORDS) for r in refs):
        return True
    calls = [b.value for n in asked if isinstance(n, ast.Name) for b in symbols.bindings(n.id, scope)] + asked
    helpers = [symbols.local_function(c.func, scope) for c in calls if isinstance(c, ast.Call)]
    return any(h is not None and any(w in ast.unparse(h.node).lower() for w in _SKIP_WORDS) for h in helpers)


def _of_a_step(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """Made from the result of scaler.step(): None with most optimisers, so that what hangs on it is another mistake."""
    return any(
        isinstance(ref.expr, ast.Call) and isinstance(ref.expr.func, ast.Attribute) and ref.expr.func.attr == "step"
        and ctx.amp.is_scaler(ref.expr.func.value, ref.scope)
        for node in walk(expr) if isinstance(node, ast.Name | ast.Attribute | ast.Call)
        for ref in ctx.symbols.resolve(node, scope)
    )  # fmt: skip


def _step_before_backward(ctx: Context, graph: Graph) -> Found:
    """The step comes before the backward in the body of a loop: an optimiser without gradients at the first step."""
    found: Found = []
    for node, event in graph.events("scaler-step"):
        if not node.loops or not is_live(ctx, event):
            continue
        loop = node.loops[-1]
        backwards = [n for n, _ in graph.events("backward") if loop in n.loops]
        earlier = [n for n, e in graph.events("backward", "opaque") if n.number < node.number]
        if backwards and not earlier and all(n.number > node.number for n in backwards):
            found.append(("order", ctx.finding(
                "R28", event.node, ERROR,
                f"`{ctx.str(event.node)}` runs before the first backward of the loop: no gradients and no scale yet (\"Attempted step but "
                "_scale is None\")",
                "scaler.scale(loss).backward() first, then scaler.step(optimizer) and scaler.update()",
            ), event.node))  # fmt: skip
    return found


RULE = Rule(
    id="R28",
    name="scaler-protocol",
    title="The order of step, update and unscale_, and the scaler in checkpoints",
    how="code, run",
    belief="Call update() after every backward; the scaler needs no saving.",
    truth=(
        'update() without a step or unscale_ raises "No inf checks were recorded"; two steps or two unscale_ without update() raise as '
        "well. With several optimisers one update() after all steps is right. A scheduler that steps after a skip gets ahead, and a "
        "scaler that is not saved starts again at 65536."
    ),
    experiment="Each breach of the protocol and the exception it raises; the scale after a resume with and without its state.",
    bad="scaler.scale(loss / k).backward()\nif (i + 1) % k == 0:\n    scaler.step(optimizer)\nscaler.update()",
    good="scaler.scale(loss / k).backward()\nif (i + 1) % k == 0:\n    scaler.step(optimizer)\n    scaler.update()\n    optimizer.zero_grad()",
    check=check,
    trigger=r"scaler|Scaler",
)

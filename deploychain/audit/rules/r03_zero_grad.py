"""R03: gradients are zeroed once between a scaler.step and the next backward."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted, last_name
from deploychain.audit.context import ERROR, Context, Rule
from deploychain.audit.events import Event
from deploychain.audit.finding import Finding
from deploychain.audit.paths import Graph, Node, search
from deploychain.audit.tree import walk


def check(ctx: Context) -> Iterator[Finding]:
    done: set[int] = set()
    for graph in ctx.graphs:
        steps = _steps(ctx, graph)
        keys = {e.key for _, e in steps} | {e.key for _, e in graph.events("optimizer-step")}
        own = {key: _own_backwards(graph, key, keys) for key in {e.key for _, e in steps}}
        for node, event in steps:
            if id(event.node) in done:
                continue
            wanted = own[event.key]
            path = search(
                graph, node, event,
                goal=lambda e, wanted=wanted: id(e) in wanted,  # type: ignore[misc]
                stop=lambda e, event=event, keys=keys: e.kind == "opaque" or _zeroes(ctx, e, event, keys),  # type: ignore[misc]
                either=lambda n, node=node: not node.guards and n.periodic,  # type: ignore[misc]
            )  # fmt: skip
            if path is not None and not (graph.implied and _cleared_elsewhere(ctx, graph, path.goal)):
                done.add(id(event.node))
                yield _missing(ctx, event, path.goal)
            elif event.kind != "scaler-step":
                continue
            elif (wiped := _wiped(graph, node, event, keys)) is not None and id(wiped.node) not in done:
                done |= {id(event.node), id(wiped.node)}
                yield ctx.finding(
                    "R03", wiped.node, ERROR,
                    f"gradients are zeroed after the backward pass and before `{ctx.str(event.node)}`, so those of "
                    "this pass never reach the step",
                    f"{ctx.str(event.node)}\n{event.detail or 'scaler'}.update()\n{ctx.str(wiped.node)}  # once, after the step",
                )  # fmt: skip


def _steps(ctx: Context, graph: Graph) -> list[tuple[Node, Event]]:
    """The steps of a GradScaler, also of the one that Fabric, Accelerate or Lightning has inside."""
    inside = [e for _, e in graph.events("backward") if e.framework]
    if not inside or not all(e.scaled is True for e in inside):
        return graph.events("scaler-step")
    return graph.events("scaler-step", "optimizer-step")


def _missing(ctx: Context, event: Event, backward: Event) -> Finding:
    node = event.node
    name = ctx.str(node.args[0]) if isinstance(node, ast.Call) and node.args else "optimizer"
    if event.kind == "optimizer-step" and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = ctx.str(node.func.value)
    update = f"{event.detail or 'scaler'}.update()\n" if event.kind == "scaler-step" else ""
    return ctx.finding(
        "R03", event.node, ERROR,
        f"no zero_grad for `{name}` between this step and the next backward (line {backward.node.lineno}): gradients of "
        "all iterations add up, and after one skipped step the inf stays in .grad and every later step is skipped",
        f"{ctx.str(event.node)}\n{update}{name}.zero_grad(set_to_none=True)",
    )  # fmt: skip


def _zeroes(ctx: Context, zero: Event, step: Event, keys: set[str]) -> bool:
    """The event zeroes the gradients that this step uses, as far as the file tells."""
    if zero.kind != "zero":
        return False
    if zero.key in keys:
        return zero.key == step.key or step.key == "*"
    return not _of_another_model(ctx, zero, step)


def _of_another_model(ctx: Context, zero: Event, step: Event) -> bool:
    """`netD.zero_grad()` before the step of an optimiser that was made from netG.parameters()."""
    if not (isinstance(zero.node, ast.Call) and isinstance(zero.node.func, ast.Attribute)):
        return False
    base = zero.node.func.value
    cleared = ctx.symbols.identity(base, zero.scope)
    if cleared is None or dotted(base) in ("self", "*") or not isinstance(step.node, ast.Call) or not step.node.args:
        return False
    made = [r for r in ctx.symbols.resolve(base, zero.scope) if isinstance(r.expr, ast.Call)]
    held: list[tuple[ast.expr, Scope]] = []
    for ref in ctx.symbols.resolve(step.node.args[0], step.scope):
        modules = [
            n.value for n in walk(ref.expr) if isinstance(n, ast.Attribute) and n.attr in ("parameters", "named_parameters")
        ]  # fmt: skip
        if not isinstance(ref.expr, ast.Call) or not modules:
            return False
        held += [(m, ref.scope) for m in modules]
    if not made or not held:
        return False
    names = {last_name(m) for m, _ in held}
    if any(last_name(n) in names for r in made for n in walk(r.expr) if isinstance(n, ast.Name | ast.Attribute)):
        return False  # a model that was put together from those
    return all(
        (other := ctx.symbols.identity(m, scope)) is not None and other[0] == cleared[0] and not _related(other[1], cleared[1])
        for m, scope in held
    )  # fmt: skip


def _related(a: str, b: str) -> bool:
    return a == b or a.startswith(b + ".") or b.startswith(a + ".")


def _cleared_elsewhere(ctx: Context, graph: Graph, backward: Event) -> bool:
    """Of one training step alone: whoever runs it may zero the gradients, unless the step does it for another optimiser."""
    if any(g.events("zero") and not _of_another_class(g, graph) for g in ctx.graphs if g.root is not graph.root):
        return True
    same = [g for g in ctx.graphs if g.root is graph.root]  # with `self` of the base class and of others
    if any(g.events("zero") for g in same) or backward.framework == "Lightning":
        return False
    given = set(graph.root.parameters) - {"self"}
    names = {n.id for n in walk(backward.node) if isinstance(n, ast.Name)}
    autocast = "autocast" in (ast.get_source_segment(ctx.text, graph.root.node) or "")
    return bool(names & given) or not autocast or backward.scope is not graph.root


def _of_another_class(other: Graph, graph: Graph) -> bool:
    """A method of a class that this step is not run by: the step of a base class as a subclass has it."""
    variant = graph.concrete is not graph.root.owner
    return variant and other.root.owner is not None and other.root.owner is not graph.concrete


def _wiped(graph: Graph, node: Node, step: Event, keys: set[str]) -> Event | None:
    """A zero_grad that comes after this step's backward and before the step: at once, or because the step waits for
    several backward passes and each of them begins with a zero_grad."""
    zeroes = [
        (n, e) for n, e in graph.events("zero") if e.key == step.key or (e.key not in keys and len(keys) == 1)
    ]  # fmt: skip
    backwards = [(n, e) for n, e in graph.events("backward") if n.loops]
    waits = any("%" in text for text, _ in node.guards)
    for cleared, zero in zeroes:
        earlier = [(n, e) for n, e in backwards if n.number < cleared.number < node.number]
        later = [(n, e) for n, e in backwards if cleared.number < n.number < node.number]
        if earlier and not later and set(cleared.guards) <= set(node.guards):
            start, backward = earlier[-1]
        elif (
            len(later) == 1
            and not earlier
            and waits
            and not any("%" in t for t, _ in (*cleared.guards, *later[0][0].guards))
        ):
            start, backward = later[0]
        else:
            continue
        if start.loops != cleared.loops or id(backward) not in _own_backwards(graph, step.key, keys, zeroed=True):
            continue
        path = search(
            graph, start, backward,
            goal=lambda e, zero=zero: e is zero,  # type: ignore[misc]
            stop=lambda e: e.kind in ("scaler-step", "optimizer-step", "opaque"),
            strict=True,
        )  # fmt: skip
        if path is not None:
            return zero
    return None


def _own_backwards(graph: Graph, key: str, keys: set[str], *, zeroed: bool = False) -> set[int]:
    """The backward passes whose gradients this optimiser's step uses: nothing zeroes them in between (unless `zeroed`),
    and with several optimisers no other backward comes in between."""
    several = len(keys) > 1
    found = set()
    for node, event in graph.events("backward"):
        path = search(
            graph, node, event,
            goal=lambda e: e.kind in ("scaler-step", "optimizer-step") and e.key == key,
            stop=lambda e: (e.kind == "backward" and several)
            or (not zeroed and e.kind == "zero" and (e.key == key or e.key not in keys)),
            strict=True,
        )  # fmt: skip
        if path is not None:
            found.add(id(event))
    return found


RULE = Rule(
    id="R03",
    name="zero-grad-cadence",
    title="No zero_grad between a step and the next backward",
    how="code, run",
    belief="zero_grad must come directly before the scaled backward, and again when step 'returns None'.",
    truth=(
        "Anywhere between the step and the next backward is right, once per optimiser step. Without it one skipped step poisons "
        "all that follow: the inf stays in .grad, and 37 of 37 later steps were skipped in the experiment."
    ),
    experiment="40 steps with one planted inf: with zero_grad after the step one step is skipped, without it every later one.",
    bad="for x, y in loader:\n    scaler.scale(loss_of(x, y)).backward()\n    scaler.step(optimizer)\n    scaler.update()",
    good="for x, y in loader:\n    optimizer.zero_grad(set_to_none=True)\n    scaler.scale(loss_of(x, y)).backward()\n    ...",
    check=check,
    trigger=r"scaler|Scaler|accelerat|fabric|Fabric|manual_backward",
)

"""R03: gradients are zeroed once between a scaler.step and the next backward."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

from collections.abc import Iterator

from deploychain.audit.context import ERROR, Context, Rule
from deploychain.audit.events import Event
from deploychain.audit.finding import Finding
from deploychain.audit.paths import Graph, search


def check(ctx: Context) -> Iterator[Finding]:
    done: set[int] = set()
    for graph in ctx.graphs:
        steps = graph.events("scaler-step")
        keys = {e.key for _, e in steps} | {e.key for _, e in graph.events("optimizer-step")}
        own = {key: _own_backwards(graph, key, keys) for key in {e.key for _, e in steps}}
        for node, event in steps:
            if id(event.node) in done:
                continue
            wanted = own[event.key]

            def zeroes(e: Event, key: str = event.key, keys: set[str] = keys) -> bool:
                if e.kind == "opaque":
                    return True
                return e.kind == "zero" and (e.key not in keys or e.key == key or key == "*")

            path = search(
                graph, node, event,
                goal=lambda e, wanted=wanted: id(e) in wanted,  # type: ignore[misc]
                stop=zeroes,
            )  # fmt: skip
            if path is None:
                continue
            done.add(id(event.node))
            name = event.key if event.key != "*" else "optimizer"
            yield ctx.finding(
                "R03", event.node, ERROR,
                f"no zero_grad for `{name}` between this step and the next backward (line {path.goal.node.lineno}): gradients of "
                "all iterations add up, and after one skipped step the inf stays in .grad and every later step is skipped",
                f"{ctx.str(event.node)}\n{event.detail or 'scaler'}.update()\n{name}.zero_grad(set_to_none=True)",
            )  # fmt: skip


def _own_backwards(graph: Graph, key: str, keys: set[str]) -> set[int]:
    """The backward passes whose gradients this optimiser's step uses: nothing zeroes them in between, and with several
    optimisers no other backward comes in between."""
    several = len(keys) > 1
    found = set()
    for node, event in graph.events("backward"):
        path = search(
            graph, node, event,
            goal=lambda e: e.kind in ("scaler-step", "optimizer-step") and e.key == key,
            stop=lambda e: (e.kind == "backward" and several) or (e.kind == "zero" and (e.key == key or e.key not in keys)),
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
    trigger=r"scaler|Scaler",
)

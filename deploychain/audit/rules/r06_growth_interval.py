"""R06: growth_interval has nothing to do with the batch size."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import UNKNOWN, Scope, argument, dotted, last_name
from deploychain.audit.context import NOTE, Context, Rule
from deploychain.audit.finding import Finding

_SHORTEST = 100  # at the ceiling about one step in `growth_interval` is skipped


def check(ctx: Context) -> Iterator[Finding]:
    places: list[tuple[ast.Call, ast.expr | None]] = []
    for call in ctx.amp.scaler_calls:
        index = 4 if (ctx.symbols.qual(call.func) or "") == "torch.amp.GradScaler" else 3
        places.append((call, argument(call, index, "growth_interval")))
    for call, scope in ctx.calls_named("set_growth_interval"):
        if isinstance(call.func, ast.Attribute) and ctx.amp.is_scaler(call.func.value, scope) and call.args:
            places.append((call, call.args[0]))
    for call, value in places:
        if value is not None:
            yield from _judge(ctx, call, value)


def _judge(ctx: Context, call: ast.Call, value: ast.expr) -> Iterator[Finding]:
    scope = ctx.symbols.scope(call)
    interval = ctx.symbols.const(value, scope)
    fix = "GradScaler()  # growth_interval=2000"
    if _uses_batch_size(ctx, value, scope):
        yield ctx.finding(
            "R06", value, NOTE,
            f"growth_interval is computed from the batch size (`{ctx.str(value)}`): the scale depends on the size of the gradients, "
            "not on how many samples they come from", fix,
        )  # fmt: skip
        return
    if not isinstance(interval, int | float) or isinstance(interval, bool):
        return
    if interval < _SHORTEST:
        yield ctx.finding(
            "R06", value, NOTE,
            f"growth_interval={interval:g}: at its ceiling the scale is tried too high once per interval, so about "
            f"{100 / max(interval, 1):.3g} % of all steps are skipped (0.05 % at 2000)", fix,
        )  # fmt: skip
        return
    steps = _planned_steps(ctx)
    if steps is not None and interval > steps:
        yield ctx.finding(
            "R06", value, NOTE,
            f"growth_interval={interval:g} is longer than the whole training ({steps:g} steps): the scale can fall, but never "
            "grows again", fix,
        )  # fmt: skip


def _uses_batch_size(ctx: Context, value: ast.expr, scope: Scope) -> bool:
    exprs = [value]
    text = dotted(value)
    if text is not None:
        exprs += [b.value for b in ctx.symbols.bindings(text, scope) if b.value is not None]
    for expr in exprs:
        for node in ast.walk(expr):
            name = dotted(node) if isinstance(node, ast.Name | ast.Attribute) else None
            leaf = (name or "").rpartition(".")[2].lower()
            if leaf in (
                "batch_size",
                "batch",
                "bs",
                "batchsize",
                "train_batch_size",
                "per_device_train_batch_size",
                "global_batch",
            ):
                return True
    return False


def _planned_steps(ctx: Context) -> float | None:
    """The number of steps, where the loop around scaler.step says it: `for step in range(500)`."""
    best: float | None = None
    for graph in ctx.graphs:
        for node, _ in graph.events("scaler-step"):
            total: float | None = 1
            for loop in node.loops:
                count = _loop_count(ctx, graph.loop_kinds[loop])
                total = total * count if total is not None and count is not None else None
            if total is None:
                return None
            if node.loops:
                best = max(best or 0, total)
    return best


def _loop_count(ctx: Context, loop: ast.AST) -> float | None:
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return None
    call = loop.iter
    if last_name(call.func) in ("tqdm", "trange") and call.args:
        inner = call.args[0]
        if isinstance(inner, ast.Call):
            call = inner
    if last_name(call.func) not in ("range", "trange"):
        return None
    scope = ctx.symbols.scope(call)
    values = [ctx.symbols.const(a, scope) for a in call.args]
    if not values or any(v is UNKNOWN or not isinstance(v, int) for v in values):
        return None
    return float(values[0] if len(values) == 1 else values[1] - values[0])


RULE = Rule(
    id="R06",
    name="growth-interval",
    title="growth_interval is tied to the batch size, too short or too long",
    how="code",
    belief="growth_interval must match the batch size, as in max(1000, batch // 16).",
    truth=(
        "The scale doubles once after `growth_interval` clean steps. At the ceiling the skip rate is about 1/interval (measured "
        "0.185, 0.085, 0.035, 0.010 % for 500, 1000, 2000, 4000). Updates are the same bits at every scale. The formula is constant "
        "for every batch up to 16000. Leave it at 2000."
    ),
    experiment="The scale after 5000 clean steps, and the skip rate at a ceiling, for four intervals.",
    bad="scaler = GradScaler(growth_interval=max(1000, batch_size // 16))",
    good='scaler = torch.amp.GradScaler("cuda")',
    check=check,
    trigger=r"growth_interval|GradScaler\(",
)

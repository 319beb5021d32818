"""R05: no fixed band of scales is healthy."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import UNKNOWN, Scope, argument, dotted
from deploychain.audit.context import NOTE, WARNING, Context, Rule
from deploychain.audit.finding import Finding

_LOWEST_ALARM = 32  # a summed loss sits at 2^5..2^12 for good reason: an alarm below that is one about real trouble


def check(ctx: Context) -> Iterator[Finding]:
    for call in ctx.amp.scaler_calls:
        scope = ctx.symbols.scope(call)
        first = 1 if (ctx.symbols.qual(call.func) or "") == "torch.amp.GradScaler" else 0
        value = ctx.symbols.const(argument(call, first, "init_scale"), scope)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1:
            yield ctx.finding(
                "R05", call, WARNING,
                f"init_scale={value:g} shrinks gradients instead of enlarging them: more of them round to zero in float16",
                "GradScaler()  # starts at 65536 and finds its level in the first steps",
            )  # fmt: skip
    for node in ctx.symbols.nodes(ast.Compare):
        yield from _band(ctx, node)


def _band(ctx: Context, node: ast.Compare) -> Iterator[Finding]:
    scope = ctx.symbols.scope(node)
    parts = [node.left, *node.comparators]
    for index, op in enumerate(node.ops):
        left, right = parts[index], parts[index + 1]
        # scale < constant, constant > scale; or a band that asserts constant <= scale
        for scale, bound, below in ((left, right, (ast.Lt, ast.LtE)), (right, left, (ast.Gt, ast.GtE))):
            limit = ctx.symbols.const(bound, scope)
            if (
                limit is UNKNOWN
                or not isinstance(limit, int | float)
                or isinstance(limit, bool)
                or limit < _LOWEST_ALARM
            ):
                continue
            if not _is_scale(ctx, scale, scope):
                continue
            asserted = _asserted(ctx, node)
            alarm = isinstance(op, below) and not asserted
            required = asserted and not isinstance(op, below)
            if alarm or required:
                yield ctx.finding(
                    "R05", node, NOTE,
                    f"a loss scale below {limit:g} is taken for a fault, but the right level depends on the loss: a summed "
                    "cross-entropy over 256 samples trains perfectly at 2^11, a large loss weight at 2^5",
                    "judge the trend instead: a scale below 1, ten skipped steps in a row, or more than 1 % skipped over 1000 "
                    "steps (deploychain.monitor does)",
                )  # fmt: skip
                return


def _asserted(ctx: Context, node: ast.AST) -> bool:
    parent = ctx.symbols.parent.get(node)
    while isinstance(parent, ast.BoolOp):
        parent = ctx.symbols.parent.get(parent)
    negated = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    return isinstance(parent, ast.Assert) or negated


def _is_scale(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    if isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute):
        return expr.func.attr == "get_scale" and ctx.amp.is_scaler(expr.func.value, scope)
    text = dotted(expr)
    if text is None:
        return False
    return any(
        b.value is not None and not b.loop and isinstance(b.value, ast.Call) and _is_scale(ctx, b.value, b.scope)
        for b in ctx.symbols.bindings(text, scope)
    )


RULE = Rule(
    id="R05",
    name="scale-health",
    title="The loss scale cannot hold, or a healthy one is taken for a fault",
    how="run, log, code",
    belief="A healthy scale is 2^16 to 2^18; below 2^14 training is sick.",
    truth=(
        "There is no such band. With reduction='sum' over 256 samples the scale settles at 2^11 after five skips and the accuracy "
        "equals FP32's. What is wrong: a scale below 1, ten or more skipped steps in a row, a skip rate above 1 % over 1000 steps "
        "after the first twenty."
    ),
    experiment="The same classifier with a mean and a summed loss: scale, skips and accuracy of both.",
    bad="if scaler.get_scale() < 2**14:\n    raise RuntimeError('loss scale collapsed')",
    good="with deploychain.monitor(model, optimizer, scaler) as m:\n    ...\n    m.step(loss)  # reports R05 from the whole series",
    check=check,
    trigger=r"get_scale|init_scale",
)

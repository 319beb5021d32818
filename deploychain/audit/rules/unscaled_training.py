"""R02: float16 autocast around a training step, and no loss scaling in sight."""

# ruff: noqa: E501  (messages are one piece of text)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted, returns
from deploychain.audit.context import NOTE, Context
from deploychain.audit.events import Event
from deploychain.audit.finding import Finding
from deploychain.audit.paths import search

# What scales the loss, by itself or in a library that this file hands the step to.
_SCALES = re.compile(
    r"scaler|scale_loss|loss_scale|accelerat|fabric|deepspeed|apex|lightning|mosaicml|colossal", re.IGNORECASE
)


def without_scaler(ctx: Context) -> Iterator[Finding]:
    """`with torch.autocast("cuda", dtype=torch.float16): loss = ...`, then loss.backward() and optimizer.step()."""
    if "autocast" not in ctx.text or ".backward(" not in ctx.text or ".step(" not in ctx.text or ctx.says(_SCALES):
        return
    if "set_autocast" in ctx.text or "mps" in ctx.text:
        return  # the default may be another dtype; a region for CUDA casts nothing elsewhere (R27)
    done: set[int] = set()
    for graph in ctx.graphs:
        for node, event in graph.events("backward"):
            if event.scaled is not False or event.framework or id(event.node) in done or not _in_half(ctx, event):
                continue
            path = search(
                graph, node, event,
                goal=lambda e: e.kind == "optimizer-step", stop=lambda e: e.kind in ("scaler-step", "opaque"),
            )  # fmt: skip
            if path is None:
                continue
            done.add(id(event.node))
            yield ctx.finding(
                "R02", event.node, NOTE,
                f"`{ctx.str(event.node)}` after float16 autocast, and no GradScaler in this file: float16 gradients below 6e-8 are 0",
                "scaler = torch.amp.GradScaler(\"cuda\"), with scaler.scale(loss).backward(), step and update; or dtype=torch.bfloat16",
            )  # fmt: skip


def _in_half(ctx: Context, event: Event) -> bool:
    """The loss was made in a region for CUDA, in float16, which no constant turns off."""
    call = event.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    text = dotted(call.func.value)
    bindings = ctx.symbols.bindings(text, event.scope) if text is not None else []
    return bool(bindings) and all(b.value is not None and _made_in_half(ctx, b.value, b.scope) for b in bindings)


def _made_in_half(ctx: Context, value: ast.expr, scope: Scope) -> bool:
    """Here, or in the function of the file that returns it."""
    if _region(ctx, value, scope):
        return True
    function = ctx.symbols.local_function(value.func, scope) if isinstance(value, ast.Call) else None
    results = returns(function) if function is not None else []
    return function is not None and bool(results) and all(_region(ctx, r, function) for r in results)


def _region(ctx: Context, node: ast.AST, scope: Scope) -> bool:
    above = ctx.symbols.parent.get(node)
    while above is not None and above is not scope.node:
        for item in above.items if isinstance(above, ast.With) else ():
            region = ctx.amp.region(item.context_expr, scope)
            if region is not None:
                own = region.enabled is not False and not region.framework
                return own and region.device == "cuda" and region.dtype == "fp16"
        above = ctx.symbols.parent.get(above)
    return False

"""R28: a scaler that lives for one batch only."""

# ruff: noqa: E501  (messages are one piece of text)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, last_name
from deploychain.audit.context import ERROR, Context
from deploychain.audit.finding import Finding
from deploychain.audit.tree import walk
from deploychain.audit.values import words

_OTHER_RUNS = words("range product")  # `for run in range(5)`: experiments, folds or epochs, not batches


def one_per_batch(ctx: Context) -> Iterator[Finding]:
    """GradScaler(...) in the loop over batches, or in a function that such a loop calls for each step."""
    for call in ctx.amp.scaler_calls:
        scope = ctx.symbols.scope(call)
        if ctx.amp.call_enabled(call, scope) is False:
            continue
        loop = _loop(ctx, call)
        if loop is None and isinstance(scope.node, ast.FunctionDef) and scope.name != "__init__":
            sites = ctx.symbols.call_sites(scope)
            loops = [_loop(ctx, s) for s in sites]
            found = (
                bool(loops)
                and all(o is not None and _over_batches(o) for o in loops)
                and _trains(ctx, scope.node, scope)
            )
        else:
            found = loop is not None and _over_batches(loop) and _trains(ctx, loop, scope)
        if found:
            yield ctx.finding(
                "R28", call, ERROR,
                "a new GradScaler for every batch: the scale is 65536 each time, so it neither falls after an overflow (every step is then "
                "skipped) nor grows",
                "make the scaler once, before the loop",
            )  # fmt: skip


def _loop(ctx: Context, node: ast.AST) -> ast.For | None:
    """The innermost loop of the same function."""
    above = ctx.symbols.parent.get(node)
    while above is not None and not isinstance(
        above, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
    ):
        if isinstance(above, ast.For):
            return above
        if isinstance(above, ast.If | ast.ExceptHandler):
            return None  # not for every batch
        above = ctx.symbols.parent.get(above)
    return None


def _over_batches(loop: ast.For) -> bool:
    source: ast.expr = loop.iter
    while (
        isinstance(source, ast.Call)
        and last_name(source.func) in ("enumerate", "tqdm", "track", "iter", "islice")
        and source.args
    ):
        source = source.args[0]
    if isinstance(source, ast.Tuple | ast.List | ast.Constant):
        return False
    return not (isinstance(source, ast.Call) and last_name(source.func) in _OTHER_RUNS)


def _trains(ctx: Context, block: ast.For | ast.FunctionDef, scope: Scope) -> bool:
    """A whole step in this very loop or function, and not in a loop inside it, with an optimiser from outside."""
    kinds = set()
    for node in walk(block):
        if not isinstance(node, ast.Call):
            continue
        name = ctx.symbols.qual(node.func) or last_name(node.func)
        if name.startswith("torch.optim.") and ".lr_scheduler" not in name:
            return False
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("backward", "step"):
            if node.func.attr == "step" and not ctx.amp.is_scaler(node.func.value, scope):
                continue
            if _loop(ctx, node) is not (block if isinstance(block, ast.For) else None):
                return False
            kinds.add(node.func.attr)
    return kinds == {"backward", "step"}

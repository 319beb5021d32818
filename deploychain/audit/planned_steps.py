"""How many optimiser steps a training makes, where its code says so."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, argument, dotted, keyword, last_name
from deploychain.audit.context import Context
from deploychain.audit.loss_scale import number
from deploychain.audit.tree import walk

_WRAPPERS = frozenset(
    {"tqdm", "track", "progress", "prange", "iter", "list", "enumerate", "auto_tqdm", "notebook_tqdm"}
)
# Constructors that are told the number of optimiser steps, with the keyword that says it.
_TOLD = {
    "OneCycleLR": "total_steps",
    "get_linear_schedule_with_warmup": "num_training_steps",
    "get_cosine_schedule_with_warmup": "num_training_steps",
    "get_polynomial_decay_schedule_with_warmup": "num_training_steps",
    "get_scheduler": "num_training_steps",
    "PolynomialLR": "total_iters",
    "Trainer": "max_steps",
    "TrainingArguments": "max_steps",
    "Seq2SeqTrainingArguments": "max_steps",
    "SFTConfig": "max_steps",
}


def planned_steps(ctx: Context) -> float | None:
    """The number of optimiser steps: of the loops around scaler.step, or as a scheduler or trainer is told."""
    looped = _looped(ctx)
    return looped if looped is not None else _told(ctx)


def _told(ctx: Context) -> float | None:
    for call, scope in ctx.calls_named(*_TOLD):
        leaf = (ctx.symbols.qual(call.func) or last_name(call.func)).rpartition(".")[2]
        steps = number(ctx, keyword(call, _TOLD.get(leaf, "max_steps")), scope)
        if steps is not None and steps > 0:
            return steps
    return None


def _looped(ctx: Context) -> float | None:
    best: float | None = None
    for graph in ctx.graphs:
        for node, event in graph.events("scaler-step"):
            if not node.loops:
                continue
            if _in_comprehension(ctx, event.node):
                return None
            loops = [graph.loop_kinds[loop] for loop in node.loops]
            total = _product(ctx, loops, event.node)
            if total is None:
                return None
            best = max(best or 0, total)
    return best


def _in_comprehension(ctx: Context, node: ast.AST, depth: int = 4) -> bool:
    """`losses = [self.step(b) for b in loader]`: a loop that the graph does not have."""
    parent = ctx.symbols.parent.get(node)
    while parent is not None and not isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
        if isinstance(parent, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
            return True
        parent = ctx.symbols.parent.get(parent)
    function = ctx.symbols.scope(node)
    return depth > 0 and any(_in_comprehension(ctx, s, depth - 1) for s in ctx.symbols.call_sites(function))


def _product(ctx: Context, loops: list[ast.AST], step: ast.AST) -> float | None:
    """The steps of nested loops. A loop that ends at a count (`if step >= N: break`) ends the whole training."""
    for loop in loops:
        ended = _ends_at(ctx, loop)
        if ended is not None:
            return ended
    total = 1.0
    for loop in loops:
        count = _count(ctx, loop.iter) if isinstance(loop, ast.For) else None
        if count is None:
            return None
        total *= count
    return total / _every(ctx, step)


def _count(ctx: Context, source: ast.expr, depth: int = 4) -> float | None:
    """How often a `for` over this expression runs."""
    if depth == 0:
        return None
    scope = ctx.symbols.scope(source)
    if not isinstance(source, ast.Call):
        for ref in ctx.symbols.resolve(source, scope):
            return _count(ctx, ref.expr, depth - 1) if ref.expr is not source else None
        return None
    leaf = last_name(source.func)
    if leaf in ("range", "trange"):
        values = [number(ctx, a, scope) for a in source.args]
        if not values or any(v is None for v in values):
            return None
        ends = [v for v in values if v is not None]
        span = ends[0] if len(ends) == 1 else ends[1] - ends[0]
        return max(span, 0.0) / (abs(ends[2]) or 1 if len(ends) > 2 else 1)
    if leaf in _WRAPPERS and source.args:
        return _count(ctx, source.args[0], depth - 1)
    if leaf == "islice" and len(source.args) > 1:
        return number(ctx, source.args[-1 if len(source.args) == 2 else 2], scope)
    if leaf == "zip":
        known = [c for a in source.args if (c := _count(ctx, a, depth - 1)) is not None]
        return min(known) if known else None
    if leaf == "DataLoader" and source.args:
        size, batch = _length(ctx, source.args[0], scope), number(ctx, argument(source, 1, "batch_size"), scope)
        return -(-size // (batch or 1)) if size is not None else None
    return None


def _length(ctx: Context, data: ast.expr, scope: Scope) -> float | None:
    """Samples of a TensorDataset whose tensors are made in the file: `TensorDataset(torch.randn(6400, 8), ...)`."""
    for ref in ctx.symbols.resolve(data, scope):
        call = ref.expr
        if not isinstance(call, ast.Call) or not call.args:
            return None
        if last_name(call.func) == "TensorDataset":
            return _length(ctx, call.args[0], ref.scope)
        if last_name(call.func) in ("randn", "rand", "zeros", "ones", "empty"):
            return number(ctx, call.args[0], ref.scope)
        if last_name(call.func) == "randint" and len(call.args) > 1:
            sizes = [a for a in call.args if isinstance(a, ast.Tuple)]
            return number(ctx, sizes[0].elts[0], ref.scope) if sizes and sizes[0].elts else None
        if last_name(call.func) == "FakeData":
            return number(ctx, argument(call, 0, "size"), ref.scope)
    return None


def _ends_at(ctx: Context, loop: ast.AST) -> float | None:
    """`while step < 3000`, or `if step >= 3000: break` (or return) inside."""
    tests: list[ast.expr] = [loop.test] if isinstance(loop, ast.While) else []
    for node in walk(loop):
        if isinstance(node, ast.If) and any(isinstance(s, ast.Break | ast.Return) for s in node.body):
            tests.append(node.test)
    counted = _counters(loop)
    for test in tests:
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            continue
        left, right = test.left, test.comparators[0]
        inside = left.left if isinstance(left, ast.BinOp) else left
        limit = number(ctx, right, ctx.symbols.scope(test))
        if dotted(inside) in counted and limit is not None and not isinstance(test.ops[0], ast.Is | ast.In):
            return limit
    return None


def _counters(loop: ast.AST) -> set[str | None]:
    """Names that count in a loop: `step += 1`, `for step, batch in enumerate(loader)`."""
    found: set[str | None] = set()
    for node in walk(loop):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            if isinstance(node.value, ast.Constant) and node.value.value == 1:
                found.add(dotted(node.target))
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Tuple):
            source = node.iter
            while isinstance(source, ast.Call) and last_name(source.func) != "enumerate" and source.args:
                source = source.args[0]
            if isinstance(source, ast.Call) and last_name(source.func) == "enumerate":
                found.add(dotted(node.target.elts[0]))
    return found


def _every(ctx: Context, step: ast.AST) -> float:
    """Gradient accumulation: `if (i + 1) % 8 == 0` around the step."""
    for test in _conditions(ctx, step):
        for node in walk(test):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                return number(ctx, node.right, ctx.symbols.scope(node)) or 1.0
    return 1.0


def _conditions(ctx: Context, node: ast.AST) -> Iterator[ast.expr]:
    parent = ctx.symbols.parent.get(node)
    while parent is not None and not isinstance(parent, ast.For | ast.While | ast.FunctionDef):
        if isinstance(parent, ast.If):
            yield parent.test
        parent = ctx.symbols.parent.get(parent)

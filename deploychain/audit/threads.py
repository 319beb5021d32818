"""Work that a piece of code hands to other threads or processes, and whether it runs a model there without autocast."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from deploychain.audit.astnames import (
    Ref,
    Scope,
    argument,
    argument_for,
    constructed,
    dotted,
    keyword,
    last_name,
    strip_module_calls,
)
from deploychain.audit.context import Context
from deploychain.audit.elements import elements, entries
from deploychain.audit.inheritance import method_of
from deploychain.audit.tree import walk

_MODEL = re.compile(
    r"model|(^|_)net(_|$|work)|forward|infer|predict|encoder|decoder|replica|backbone|generator|unet|module$"
    r"|embedder|classifier|detector|segmentor|transformer|student|teacher"
)
_NO_MODEL = re.compile(
    r"save|write|load|read|log|dump|upload|push|put|send|store|callback|print|fetch|download|decode_"
)
_SUBMITS = frozenset({"submit", "map", "imap", "imap_unordered", "apply", "apply_async", "map_async", "starmap"})
_POOLS = ("ThreadPoolExecutor", "pool.ThreadPool", "dummy.Pool")
_PROCESSES = ("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes")


def started(ctx: Context, body: Sequence[ast.AST], depth: int = 2) -> Iterator[tuple[ast.Call, ast.expr | Scope]]:
    """(call, what it runs) of everything that these statements start in another thread or process."""
    for statement in body:
        for call in walk(statement):
            if not isinstance(call, ast.Call):
                continue
            target = _target(ctx, call)
            if target is not None:
                yield call, target
            elif depth:
                function = ctx.symbols.local_function(call.func, ctx.symbols.scope(call))
                if function is not None and function.name != "forward" and not _opens(ctx, function.node):
                    for inner, work in started(ctx, function.body, depth - 1):
                        given = argument_for(call, function, work.id) if isinstance(work, ast.Name) else None
                        yield inner, work if given is None else given  # `def dispatch(fn, items): pool.submit(fn, ...)`


def _target(ctx: Context, call: ast.Call) -> ast.expr | Scope | None:
    name = ctx.symbols.qual(call.func) or ""
    leaf = last_name(call.func)
    scope = ctx.symbols.scope(call)
    if name in ("threading.Thread", "torch.multiprocessing.Process"):
        return argument(call, 1, "target")
    if name in _PROCESSES and (call.args or call.keywords):
        return argument(call, 0, "fn")
    if name == "asyncio.to_thread" and call.args:
        return call.args[0]
    if leaf == "run_in_executor" and len(call.args) > 1:
        return call.args[1]
    if leaf == "delayed" and call.args and isinstance(ctx.symbols.parent.get(call), ast.Call):
        return call.args[0]  # joblib
    if not isinstance(call.func, ast.Attribute):
        return None
    if leaf in _SUBMITS and (call.args or call.keywords):
        return argument(call, 0, "fn", "func") if _is_pool(ctx, call.func.value, scope) else None
    if leaf == "start" and not call.args:
        return _started_object(ctx, call.func.value, scope)
    return None


def _is_pool(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    return any(
        isinstance(r.expr, ast.Call) and (ctx.symbols.qual(r.expr.func, r.scope) or "").endswith(_POOLS)
        for r in ctx.symbols.resolve(expr, scope)
    )


def _started_object(ctx: Context, expr: ast.expr, scope: Scope) -> ast.expr | Scope | None:
    """What `t.start()` runs: the target of a Thread, also one of a list of them, or the `run` of a Thread class."""
    text = dotted(expr) or ""
    sources: list[ast.expr] = [r.expr for r in ctx.symbols.resolve(expr, scope)]
    for binding in ctx.symbols.bindings(text, scope):
        if binding.loop and binding.value is not None:
            sources += [r.expr for r in ctx.symbols.resolve(binding.value, binding.scope)]
            held = dotted(binding.value)
            sources += [
                c.args[0]
                for c, _ in ctx.calls_named("append")
                if isinstance(c.func, ast.Attribute) and c.args and held and dotted(c.func.value) == held
            ]
    for source in sources:
        made = source.elt if isinstance(source, ast.ListComp) else source
        for ref in ctx.symbols.resolve(made, ctx.symbols.scope(made)):
            if not isinstance(ref.expr, ast.Call):
                continue
            if ctx.symbols.qual(ref.expr.func, ref.scope) in ("threading.Thread", "torch.multiprocessing.Process"):
                return argument(ref.expr, 1, "target")
            cls = ctx.symbols.classes.get(last_name(ref.expr.func))
            if cls is not None and any(last_name(b) == "Thread" for b in getattr(cls.node, "bases", [])):
                return next((f for f in ctx.symbols.functions.get("run", ()) if f.owner is cls), None)
    return None


def runs_a_model(ctx: Context, target: ast.expr | Scope) -> bool:
    """The started work calls a model and opens no autocast region for it."""
    if isinstance(target, Scope):
        return _function_runs(ctx, target)
    scope = ctx.symbols.scope(target)
    works = list(_works(ctx, target, scope, 4))
    if works:
        return any(
            _function_runs(ctx, w)
            if isinstance(w.node, ast.FunctionDef | ast.AsyncFunctionDef)
            else _calls_model(ctx, w.node, set(w.parameters), 3)
            for w in works
        )
    text = (dotted(target) or "").rpartition(".")[2].lower()
    for binding in ctx.symbols.bindings(text, scope):
        if binding.loop and binding.value is not None and _MODEL.search((dotted(binding.value) or "").lower()):
            return True
    return bool(_MODEL.search(text)) and _NO_MODEL.search(text) is None


def _works(ctx: Context, expr: ast.expr, scope: Scope, depth: int) -> Iterator[Scope]:
    """The functions of this file that a started expression may run.

    Functions, methods and lambdas, objects with `__call__`, partials of these, entries of a list or table, and what
    holds any of them under another name.
    """
    symbols = ctx.symbols
    if depth == 0:
        return
    if isinstance(expr, ast.Lambda):
        yield Scope(expr, scope, parameters=[a.arg for a in expr.args.args])
        return
    if isinstance(expr, ast.Call) and last_name(expr.func) == "partial" and expr.args:
        yield from _works(ctx, expr.args[0], scope, depth - 1)
        return
    function = symbols.local_function(expr, scope)
    if function is None and isinstance(expr, ast.Name):
        function = next(iter(symbols.functions.get(expr.id, ())), None)
    if function is not None:
        yield function
        return
    if isinstance(expr, ast.Attribute):  # `worker.run` of each of several workers
        for cls in _classes(ctx, expr.value, scope):
            method = method_of(symbols, cls, expr.attr)
            if method is not None:
                yield method
                return
    for cls in _classes(ctx, expr, scope):
        method = method_of(symbols, cls, "__call__")
        if method is not None:
            yield method
            return
    for ref in [*symbols.resolve(expr, scope), *elements(symbols, expr, scope), *_entries_of(ctx, expr, scope)]:
        if ref.expr is not expr:
            yield from _works(ctx, ref.expr, ref.scope, depth - 1)


def _classes(ctx: Context, expr: ast.expr, scope: Scope) -> Iterator[Scope]:
    """The classes of this file that an object, or each of the objects that a name goes through, is of."""
    own = ctx.symbols.instance_class(expr, scope)
    if own is not None:
        yield own
    for ref in (*elements(ctx.symbols, expr, scope), *_entries_of(ctx, expr, scope)):
        cls = ctx.symbols.classes.get(constructed(ref.expr)) if isinstance(ref.expr, ast.Call) else None
        if cls is not None:
            yield cls


def _entries_of(ctx: Context, expr: ast.expr, scope: Scope) -> list[Ref]:
    """`workers[i]`, `TASKS[kind]`: any entry of the list or table."""
    if not isinstance(expr, ast.Subscript):
        return []
    tables = ctx.symbols.resolve(expr.value, scope)
    return [Ref(e, ctx.symbols.scope(e)) for t in tables for e in entries(t.expr)[:8]]


def _function_runs(ctx: Context, function: Scope, depth: int = 3) -> bool:
    if any(ctx.amp.region(d, ctx.symbols.scope(d)) for d in getattr(function.node, "decorator_list", [])):
        return False
    return _calls_model(ctx, function.node, set(function.parameters) - {"self", "cls"}, depth)


def _calls_model(ctx: Context, node: ast.AST, parameters: set[str], depth: int) -> bool:
    for call in walk(node):
        if not isinstance(call, ast.Call) or _in_region(ctx, call, node):
            continue
        called = strip_module_calls(call.func)  # `model.to(rank)(x)`
        name = last_name(called).lower()
        function = ctx.symbols.local_function(call.func, ctx.symbols.scope(call))
        if function is not None and function.name != "forward":
            if depth and function.node is not node and _function_runs(ctx, function, depth - 1):
                return True
            continue
        if ctx.symbols.qual(call.func) is not None or _NO_MODEL.search(name):
            continue
        if name in ("eval", "train", "to", "cuda", "parameters", "state_dict"):
            continue
        if _MODEL.search(name) or (isinstance(call.func, ast.Name) and name in ("m", "f", "fn") and name in parameters):
            return True
        if isinstance(call.func, ast.Attribute) and name == "generate" and keyword(call, "prompt") is None:
            return True
        if isinstance(call.func, ast.Subscript) and _MODEL.search((dotted(call.func.value) or "").lower()):
            return True
    return False


def _opens(ctx: Context, node: ast.AST) -> bool:
    return any(ctx.amp.region(d, ctx.symbols.scope(d)) for d in getattr(node, "decorator_list", []))


def _in_region(ctx: Context, node: ast.AST, top: ast.AST) -> bool:
    parent = ctx.symbols.parent.get(node)
    while parent is not None and parent is not top:
        if isinstance(parent, ast.With | ast.AsyncWith):
            for item in parent.items:
                if ctx.amp.region(item.context_expr, ctx.symbols.scope(item.context_expr)):
                    return True
        parent = ctx.symbols.parent.get(parent)
    return False

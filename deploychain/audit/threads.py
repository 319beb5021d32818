"""Work that a piece of code hands to other threads or processes, and whether it runs a model there without autocast."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from deploychain.audit.astnames import Scope, argument, dotted, keyword, last_name, strip_module_calls
from deploychain.audit.context import Context
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
                    yield from started(ctx, function.body, depth - 1)


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
    if isinstance(target, ast.Call) and last_name(target.func) == "partial" and target.args:
        target = target.args[0]
    scope = ctx.symbols.scope(target)
    if isinstance(target, ast.Lambda):
        return _calls_model(ctx, target, {a.arg for a in target.args.args}, 3)
    function = ctx.symbols.local_function(target, scope)
    if function is None:
        function = next(
            (f for f in ctx.symbols.functions.get(last_name(target), ()) if isinstance(target, ast.Name)), None
        )
    if function is not None:
        return _function_runs(ctx, function)
    text = (dotted(target) or "").rpartition(".")[2].lower()
    for binding in ctx.symbols.bindings(text, scope):
        if binding.loop and binding.value is not None and _MODEL.search((dotted(binding.value) or "").lower()):
            return True
    return bool(_MODEL.search(text)) and _NO_MODEL.search(text) is None


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

"""Where trained weights come in: checkpoints that are loaded, and models that are made with pretrained weights."""

from __future__ import annotations

import ast
import re

from deploychain.audit.astnames import Scope, keyword, last_name
from deploychain.audit.context import Context
from deploychain.audit.tree import walk

_LOADERS = re.compile(
    r"^(load_state_dict|from_pretrained|load_model|load_checkpoint|load_weights|load_from_checkpoint|load_pretrained\w*)$"
)
# Functions that make a network: what is loaded elsewhere in the class comes after them.
_BUILDS = re.compile(r"^_*(get_model|get_net\w*|build\w*|create\w*|make\w*|construct\w*|init\w*|reset\w*|__init__)$")
_WHOLE = frozenset({"torch.hub.load", "torch.jit.load", "safetensors.torch.load_model"})


def loads(ctx: Context, call: ast.Call) -> bool:
    """This call puts trained weights into a model."""
    if _LOADERS.match(last_name(call.func)):
        owner = ast.unparse(call.func).lower() if isinstance(call.func, ast.Attribute) else ""
        return not re.search(r"optim|opt\.|sched|scaler|tokenizer|processor|config", owner)
    if ctx.symbols.qual(call.func) in _WHOLE:
        return True
    given = keyword(call, "pretrained", "weights")
    return given is not None and not (isinstance(given, ast.Constant) and given.value in (None, False))


def loaded_before(ctx: Context, node: ast.stmt | ast.expr, scope: Scope, depth: int = 3) -> bool:
    """Weights were loaded before this runs: in its function, in one that calls it, or in a method of its class."""
    for call in ctx.symbols.calls:
        earlier = ctx.symbols.scope(call) is scope and call.lineno <= node.lineno and call is not node
        if earlier and (loads(ctx, call) or _inside(ctx, call, 2)) and _leads_to(ctx, call, node):
            return True
    if isinstance(scope.node, ast.Lambda) and depth and scope.parent is not None:
        return loaded_before(ctx, scope.node, scope.parent, depth - 1)
    if not isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef) or not depth:
        return False
    sites: list[ast.Call] = list(ctx.symbols.call_sites(scope))
    sites += [c for c, _ in ctx.calls_named("apply") if c.args and _runs(ctx, c.args[0], scope)]
    if scope.owner is not None and scope.name != "forward" and not _BUILDS.match(scope.name):
        later = not sites or any(ctx.symbols.scope(site).name != "__init__" for site in sites)
        for call in ctx.symbols.calls if later else ():
            where = ctx.symbols.scope(call)
            if where.owner is not scope.owner or where is scope or not loads(ctx, call):
                continue
            if not any(ctx.symbols.scope(site) is scope for site in ctx.symbols.call_sites(where)):  # (judged above)
                return True
    return any(loaded_before(ctx, site, ctx.symbols.scope(site), depth - 1) for site in sites[:6])


def _leads_to(ctx: Context, earlier: ast.AST, later: ast.AST) -> bool:
    """The two may run one after the other: not in different arms of an `if`, and no `return` behind the first."""
    child, parent = earlier, ctx.symbols.parent.get(earlier)
    while parent is not None and not isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
        if isinstance(parent, ast.If) and child is not parent.test:
            arm, other = (parent.body, parent.orelse) if child in parent.body else (parent.orelse, parent.body)
            inside = any(n is later for s in arm for n in walk(s))
            if any(n is later for s in other for n in walk(s)):
                return False
            if not inside and isinstance(arm[-1], ast.Return | ast.Raise):
                return False
        child, parent = parent, ctx.symbols.parent.get(parent)
    return True


def _runs(ctx: Context, applied: ast.expr, function: Scope) -> bool:
    """`model.apply(fn)`, or `model.apply(NormPatcher(1e-3))` of a class with `__call__`."""
    if last_name(applied) == function.name:
        return True
    if function.name != "__call__" or function.owner is None:
        return False
    return ctx.symbols.instance_class(applied, ctx.symbols.scope(applied)) is function.owner


def loaded_after(ctx: Context, node: ast.stmt | ast.expr, scope: Scope) -> bool:
    """The same function loads weights afterwards, always (a resumed training had the same code before)."""
    for call in ctx.symbols.calls:
        if ctx.symbols.scope(call) is scope and call.lineno > node.lineno and loads(ctx, call):
            parent = ctx.symbols.parent.get(call)
            while parent is not None and parent is not scope.node and not isinstance(parent, ast.If):
                parent = ctx.symbols.parent.get(parent)
            if not isinstance(parent, ast.If) and "resume" not in ctx.str(call).lower():
                return True
    return False


def _inside(ctx: Context, call: ast.Call, depth: int) -> bool:
    """The function of this file that is called here, or the class that is made, loads weights."""
    cls = ctx.symbols.classes.get(last_name(call.func))
    if cls is not None:
        function = next((f for f in ctx.symbols.functions.get("__init__", ()) if f.owner is cls), None)
    else:
        function = ctx.symbols.local_function(call.func, ctx.symbols.scope(call))
    if function is None or (cls is None and function.name in ("__init__", "forward")):
        return False
    for inner in ctx.symbols.calls:
        if ctx.symbols.scope(inner) is function and (
            loads(ctx, inner) or (depth > 1 and _inside(ctx, inner, depth - 1))
        ):
            return True
    return False

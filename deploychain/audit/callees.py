"""What a call runs where the called name is not the function's own: aliases, partials, tables of functions."""

from __future__ import annotations

import ast

from deploychain.audit.astnames import Ref, Scope, dotted, last_name
from deploychain.audit.symbols import Symbols

_MOST = 4  # a table with more entries says nothing about one call


def runs(symbols: Symbols, call: ast.Call, scope: Scope) -> Scope | None:
    """The function of this file that a call runs, `__call__` of an object among them."""
    found = symbols.local_function(call.func, scope) or symbols.super_method(call.func, scope)
    if found is None:
        func = written_as(symbols, call.func, scope)
        found = symbols.local_function(func, scope) if func is not call.func else None
    if found is None and "__call__" in symbols.functions and dotted(call.func) is not None:
        cls = symbols.instance_class(call.func, scope)
        own = [f for f in symbols.functions["__call__"] if f.owner is not None and f.owner is cls]
        return own[0] if own else None
    return found


def written_as(symbols: Symbols, func: ast.expr, scope: Scope) -> ast.expr:
    """The method that a name stands for: `self.after_backward = self._clip`, `step = trainer.step`."""
    text = dotted(func) if isinstance(func, ast.Name | ast.Attribute) else None
    bindings = symbols.bindings(text, scope) if text is not None else []
    held = bindings[0].value if len(bindings) == 1 and not bindings[0].loop and bindings[0].place is None else None
    if not isinstance(held, ast.Attribute) or held.attr not in symbols.functions:
        return func
    own = bindings[0].scope is scope or (text or "").startswith("self.") == (dotted(held) or "").startswith("self.")
    return held if own else func


def handed(symbols: Symbols, func: ast.expr, scope: Scope) -> list[Scope]:
    """The functions of this file that a name holds which somebody else gave: `step_fn` of `run(loader, step_fn=train)`.

    As a parameter, or as an attribute that the constructor sets.
    """
    text = dotted(func) if isinstance(func, ast.Name | ast.Attribute) else None
    if text is None or not (symbols.bindings(text, scope) or symbols.parameter_scope(text, scope) is not None):
        return []
    refs = [r for r in symbols.resolve(func, scope) if r.expr is not func]
    found = [function_named(symbols, r.expr, r.scope) for r in refs]
    return list(dict.fromkeys(f for f in found if f is not None))


def function_named(symbols: Symbols, expr: ast.expr, scope: Scope) -> Scope | None:
    """The function or method of this file that an expression names without calling it."""
    if isinstance(expr, ast.Name) and symbols.parameter_scope(expr.id, scope) is not None:
        return None
    return symbols.local_function(expr, scope) if isinstance(expr, ast.Name | ast.Attribute) else None


def call_sites(symbols: Symbols, function: Scope) -> list[ast.Call]:
    """The calls that run a function of this file, `__call__` among them."""
    if function.name == "__call__":
        return [c for c in symbols.calls if runs(symbols, c, symbols.scope(c)) is function]
    return symbols.call_sites(function)


def callers(symbols: Symbols, function: Scope) -> list[Scope]:
    """Where a function of this file is called from, also through other functions; not the function itself."""
    found = [function]
    for scope in found:
        if isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef) and len(found) < 9:
            sites = (symbols.scope(c) for c in call_sites(symbols, scope)[:4])
            found += [s for s in dict.fromkeys(sites) if s not in found]
    return found[1:]


def callees(symbols: Symbols, func: ast.expr, scope: Scope) -> list[Ref]:
    """The functions that a call expression may run, each as a name that means something in its scope.

    `step = scaler.step; step(opt)`, `clip = partial(clip_grad_norm_, max_norm=1.0)`, `CLIP[mode](...)`,
    `self.clip = clip_grad_norm_`, `(f if a else g)(x)`, `getattr(utils, f"clip_grad_{kind}_")(...)`.
    """
    own = [Ref(func, scope)]
    if isinstance(func, ast.Name):
        if func.id in symbols.imports or func.id in symbols.functions or func.id in symbols.classes:
            return own
    elif isinstance(func, ast.Attribute):
        text = dotted(func)
        if text is None or not symbols.bindings(text, scope):
            return own
    found: list[Ref] = []
    for ref in symbols.resolve(func, scope):
        found += _function(symbols, ref, 3)
    return found if 0 < len(found) <= _MOST else own


def _function(symbols: Symbols, ref: Ref, depth: int) -> list[Ref]:
    expr = ref.expr
    if isinstance(expr, ast.Name | ast.Attribute):
        return [ref]
    if depth == 0:
        return []
    if isinstance(expr, ast.Subscript):
        return [
            inner
            for table in symbols.resolve(expr.value, ref.scope)
            if isinstance(table.expr, ast.Dict)
            for value in table.expr.values
            for each in symbols.resolve(value, table.scope)
            for inner in _function(symbols, each, depth - 1)
        ]
    if not isinstance(expr, ast.Call) or not expr.args:
        return []
    name = last_name(expr.func)
    if name in ("partial", "compile"):
        return [
            inner for each in symbols.resolve(expr.args[0], ref.scope) for inner in _function(symbols, each, depth - 1)
        ]
    if name == "getattr" and len(expr.args) == 2 and isinstance(expr.args[1], ast.JoinedStr):
        start = expr.args[1].values[0]
        if isinstance(start, ast.Constant) and str(start.value).startswith("clip_grad"):
            made = ast.Attribute(expr.args[0], "clip_grad_norm_", ast.Load())
            return [Ref(ast.copy_location(made, expr), ref.scope)]
    return []

"""What a loop variable stands for: the entries of the list, dictionary or comprehension that the loop goes through."""

from __future__ import annotations

import ast

from deploychain.audit.astnames import Ref, Scope, dotted, last_name
from deploychain.audit.symbols import Symbols


def elements(symbols: Symbols, expr: ast.expr, scope: Scope) -> list[Ref]:
    """The expressions that a loop variable may be, and the name of the collection itself; empty for other names."""
    if not isinstance(expr, ast.Name):
        return []
    found: list[Ref] = []
    for binding in symbols.bindings(expr.id, scope):
        if not binding.loop or binding.value is None:
            continue
        value, place = _collection(binding.value, binding.place)
        if dotted(value) is not None:
            found.append(Ref(value, binding.scope))
        for ref in symbols.resolve(value, binding.scope):
            for entry in _entries(ref.expr):
                if place is not None:
                    if not isinstance(entry, ast.Tuple | ast.List) or place >= len(entry.elts):
                        continue
                    entry = entry.elts[place]
                found += symbols.resolve(entry, symbols.scope(entry))
    return found


def _collection(value: ast.expr, place: int | None) -> tuple[ast.expr, int | None]:
    """`enumerate(x)`, `zip(x, y)`, `x.items()` and `x.values()` without the wrapping."""
    if isinstance(value, ast.Call):
        name = last_name(value.func)
        if name == "enumerate" and place == 1 and value.args:
            return _collection(value.args[0], None)
        if name == "zip" and place is not None and place < len(value.args):
            return _collection(value.args[place], None)
        if isinstance(value.func, ast.Attribute) and ((name == "items" and place == 1) or name == "values"):
            return value.func.value, None
    return value, place


def _entries(expr: ast.expr) -> list[ast.expr]:
    if isinstance(expr, ast.ListComp | ast.GeneratorExp | ast.SetComp):
        return [expr.elt]
    if isinstance(expr, ast.DictComp):
        return [expr.value]
    if isinstance(expr, ast.Dict):
        return expr.values
    return expr.elts if isinstance(expr, ast.List | ast.Tuple) else []

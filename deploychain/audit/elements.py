"""What a loop variable stands for: the entries of the list, dictionary or comprehension that the loop goes through."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from deploychain.audit.astnames import Ref, Scope, dotted, last_name

if TYPE_CHECKING:
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
            for entry in entries(ref.expr):
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


def entries(expr: ast.expr) -> list[ast.expr]:
    """What a list, dictionary or comprehension that is written out holds."""
    if isinstance(expr, ast.ListComp | ast.GeneratorExp | ast.SetComp):
        return [expr.elt]
    if isinstance(expr, ast.DictComp):
        return [expr.value]
    if isinstance(expr, ast.Dict):
        return expr.values
    return expr.elts if isinstance(expr, ast.List | ast.Tuple) else []


def looped(symbols: Symbols, expr: ast.expr, scope: Scope) -> list[Ref]:
    """What a loop variable goes through: the elements of a list or dictionary that is written in the file."""
    found: list[Ref] = []
    for binding in symbols.bindings(expr.id, scope) if isinstance(expr, ast.Name) else ():
        source, place = binding.value, binding.place
        if not binding.loop or source is None:
            continue
        if isinstance(source, ast.Call) and last_name(source.func) in ("zip", "enumerate") and place is not None:
            index = place if last_name(source.func) == "zip" else place - 1
            source, place = (source.args[index], None) if 0 <= index < len(source.args) else (source, 9)
        elif isinstance(source, ast.Call) and last_name(source.func) in ("items", "values", "children"):
            place = None if place in (None, 1) else 9
            source = source.func.value if isinstance(source.func, ast.Attribute) else source
        for ref in symbols.resolve(source, binding.scope):
            for element in _held(ref.expr):
                picked = element if place is None else _held(element)[place : place + 1]
                for part in picked if isinstance(picked, list) else [picked]:
                    found += symbols.resolve(part, ref.scope)
    return found


def _held(expr: ast.expr) -> list[ast.expr]:
    """The elements of a list, tuple, dictionary or list of modules that is written out."""
    if isinstance(expr, ast.Call) and last_name(expr.func) in ("ModuleList", "ModuleDict") and expr.args:
        expr = expr.args[0]
    if isinstance(expr, ast.Dict):
        return expr.values
    return expr.elts if isinstance(expr, ast.List | ast.Tuple | ast.Set) else []

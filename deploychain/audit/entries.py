"""Calls of what a table holds, written as calls of the entry itself: `LOSSES[args.loss](p, y)` as `dice(p, y)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deploychain.audit.astnames import Scope, dotted, last_name
from deploychain.audit.keywords import fill_in_partial
from deploychain.audit.tree import renew

if TYPE_CHECKING:
    from deploychain.audit.symbols import Symbols

_LOOK_UP = frozenset({"get", "lookup"})


def write_out_entries(symbols: Symbols) -> bool:
    """Where the file says which entry it is (by a constant, a default, a setting); whether any call was changed."""
    changed = False
    names = set(_bound_names(symbols))
    for call in symbols.calls:
        if isinstance(call.func, ast.Name | ast.Attribute):
            if not names or dotted(call.func) not in names:
                continue
        elif not _looked_up(call.func):
            continue
        scope = symbols.scope(call)
        if not _from_a_table(symbols, call.func, scope):
            continue
        refs = [r for r in symbols.resolve(call.func, scope) if r.expr is not call.func]
        entry = refs[0].expr if len(refs) == 1 else _optimizer(symbols, call.func, scope) if not refs else None
        partial = entry if isinstance(entry, ast.Call) and last_name(entry.func) == "partial" and entry.args else None
        entry = partial.args[0] if partial is not None else entry
        if entry is None or not (
            _means_the_same_everywhere(symbols, entry) or (refs and _own_method(symbols, entry, refs[0].scope, scope))
        ):
            continue
        if partial is not None:
            fill_in_partial(call, partial)
        call.func = entry
        renew(call)
        symbols.add_call_site(call)
        changed = True
    return changed


def _optimizer(symbols: Symbols, func: ast.expr, scope: Scope) -> ast.expr | None:
    """One of a table that holds nothing but optimisers of torch: by choice one that is not of Adam's family."""
    if not isinstance(func, ast.Subscript):
        return None
    tables = [r for r in symbols.resolve(func.value, scope) if isinstance(r.expr, ast.Dict)]
    entries = [(v, symbols.qual(v, t.scope) or "") for t in tables for v in t.expr.values]  # type: ignore[attr-defined]
    if not entries or not all(name.startswith("torch.optim.") for _, name in entries):
        return None
    plain = [entry for entry, name in entries if "Ada" not in name and not name.endswith("Adam")]
    chosen: ast.expr = plain[0] if plain else entries[0][0]
    return chosen


def _from_a_table(symbols: Symbols, func: ast.expr, scope: Scope) -> bool:
    """`TABLE[key]`, `TABLE.get(key)`, or a name that was bound once to such."""
    if isinstance(func, ast.Name | ast.Attribute):
        text = dotted(func)
        bindings = symbols.bindings(text, scope) if text is not None else []
        if len(bindings) != 1 or bindings[0].loop or bindings[0].value is None:
            return False
        func = bindings[0].value
    return _looked_up(func)


def _looked_up(expr: ast.expr) -> bool:
    if isinstance(expr, ast.Subscript):
        return not (isinstance(expr.slice, ast.Constant) and isinstance(expr.slice.value, int))
    return isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and expr.func.attr in _LOOK_UP


def _bound_names(symbols: Symbols) -> Iterator[str]:
    """Names that are bound to something out of a table."""
    for node in symbols.nodes(ast.Assign):
        if not isinstance(node.value, ast.Tuple | ast.Subscript | ast.Call):
            continue
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        if any(_looked_up(value) for value in values):
            for target in node.targets:
                for name in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
                    yield dotted(name) or ""


def _own_method(symbols: Symbols, entry: ast.expr, home: Scope, scope: Scope) -> bool:
    """`{"bce": self._bce}[kind]`, called in the same class."""
    if not isinstance(entry, ast.Attribute) or dotted(entry.value) != "self" or entry.attr not in symbols.functions:
        return False
    return symbols.class_of(home) is symbols.class_of(scope)


def _means_the_same_everywhere(symbols: Symbols, entry: ast.expr) -> bool:
    """A function or class of this file or of a module that it imports."""
    if isinstance(entry, ast.Name):
        known = entry.id in symbols.imports or entry.id in symbols.classes
        return known or any(f.owner is None for f in symbols.functions.get(entry.id, ()))
    root = entry
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(entry, ast.Attribute) and last_name(root) in symbols.imports

"""Arguments that a call gets from elsewhere: out of a dictionary, or of a partial function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from deploychain.audit.astnames import Scope, argument_for, dotted, last_name
from deploychain.audit.tree import renew

if TYPE_CHECKING:
    from deploychain.audit.symbols import Symbols

_CHANGES_A_DICT = frozenset({"update", "setdefault", "pop", "popitem", "clear"})


def write_out_keywords(symbols: Symbols) -> None:
    """`f(**SETTINGS)` with one dictionary that is written in the file and never changed: `f(opset_version=17)`."""
    for call in symbols.calls:
        if any(k.arg is None for k in call.keywords):
            written: list[ast.keyword] = []
            for keyword in call.keywords:
                known = _written(symbols, keyword.value, symbols.scope(call)) if keyword.arg is None else None
                written += [keyword] if known is None else known
            call.keywords = written
            renew(call)


def write_out_partials(symbols: Symbols) -> None:
    """`norm(x)` after `norm = partial(F.normalize, eps=1e-10)`: `F.normalize(x, eps=1e-10)`."""
    if "partial" not in symbols.source.text:
        return
    for call in symbols.calls:
        text = dotted(call.func) if isinstance(call.func, ast.Name | ast.Attribute) else None
        bindings = symbols.bindings(text, symbols.scope(call)) if text is not None else []
        only = len(bindings) == 1 and not bindings[0].loop and bindings[0].place is None
        made = bindings[0].value if only else None
        if not isinstance(made, ast.Call) or last_name(made.func) != "partial" or not made.args:
            continue
        home = bindings[0].scope
        if home is symbols.module or home is symbols.scope(call):
            call.func = made.args[0]
            fill_in_partial(call, made)
            symbols.add_call_site(call)


def fill_in_partial(call: ast.Call, made: ast.Call) -> None:
    """Give a call the arguments of the `partial(...)` that it calls, in place."""
    own = {k.arg for k in call.keywords}
    call.args = [*made.args[1:], *call.args]
    call.keywords = [*(k for k in made.keywords if k.arg is None or k.arg not in own), *call.keywords]
    renew(call)


def _written(symbols: Symbols, expr: ast.expr, scope: Scope) -> list[ast.keyword] | None:
    table: ast.expr | None = expr
    text = dotted(expr)
    if text is not None:
        bindings = symbols.bindings(text, scope)
        if len(bindings) != 1 or bindings[0].loop or bindings[0].place is not None or _changed(symbols, text):
            return None
        table = bindings[0].value
    if isinstance(table, ast.Dict):
        pairs = [(getattr(k, "value", None), v) for k, v in zip(table.keys, table.values, strict=True)]
    elif isinstance(table, ast.Call) and isinstance(table.func, ast.Name) and table.func.id == "dict":
        pairs = [(k.arg, k.value) for k in table.keywords] if not table.args else [(None, table)]
    else:
        return None
    made = [ast.copy_location(ast.keyword(key, value), value) for key, value in pairs if isinstance(key, str)]
    return made if len(made) == len(pairs) else None


def _changed(symbols: Symbols, text: str, *, followed: bool = True) -> bool:
    """Something is put into the dictionary, or taken out of it, somewhere in the file."""
    for node in symbols.nodes(ast.Subscript):
        if not isinstance(node.ctx, ast.Load) and dotted(node.value) == text:
            return True
    for node in symbols.nodes(ast.AugAssign):
        if dotted(node.target) == text:
            return True
    if followed and _handed_on(symbols, text):
        return True
    return any(
        isinstance(c.func, ast.Attribute) and c.func.attr in _CHANGES_A_DICT and dotted(c.func.value) == text
        for c in symbols.calls
    )


def _handed_on(symbols: Symbols, text: str) -> bool:
    """A function of the file gets the dictionary under another name and changes it."""
    for call in symbols.calls:
        given = [a for a in call.args if isinstance(a, ast.Name) and a.id == text]
        for function in symbols.functions.get(last_name(call.func), ()) if given else ():
            others = [p for p in function.parameters if p != text and argument_for(call, function, p) in given]
            if any(_changed(symbols, p, followed=False) for p in others if p not in ("self", "cls")):
                return True
    return False

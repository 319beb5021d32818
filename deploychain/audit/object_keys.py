"""Names for objects that are the same in a function and in those that it calls."""

from __future__ import annotations

import ast
from typing import TypeAlias

from deploychain.audit.astnames import Scope, dotted, last_name
from deploychain.audit.held_objects import HeldObjects
from deploychain.audit.symbols import Symbols

Item: TypeAlias = "str | list[Item] | None"


class ObjectKeys:
    """`names` maps the parameters of a function, and what they hold, to the names of the function at the root."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.held = HeldObjects(symbols)

    def key(self, expr: ast.expr, names: dict[str, str]) -> str:
        """A name for an object that is the same in callers and callees."""
        text = dotted(expr)
        if text is None and isinstance(expr, ast.Call) and last_name(expr.func) == "super":
            return names.get("self", "self")
        if text is None:
            return "*"
        start = text
        while names and "." in start:  # "self.trainer" of `self.trainer.optimizer`
            if start in names:
                return names[start] + text[len(start) :]
            start = start.rpartition(".")[0]
        if isinstance(expr, ast.Attribute | ast.Subscript):
            known = self._part(expr, text, names)
            if known is not None:
                return known
        head, _, rest = text.partition(".")
        known = names.get(head) or (self._alias(expr, head, names) if rest else None)
        return text if known is None else known + (f".{rest}" if rest else "")

    def _alias(self, expr: ast.expr, head: str, names: dict[str, str]) -> str | None:
        """`t` of `t = self.trainer`."""
        scope = self.symbols.scope(expr)
        bindings = scope.bindings.get(head, [])
        if len(bindings) != 1 or bindings[0].loop or bindings[0].place is not None:
            return None
        value = bindings[0].value
        text = dotted(value) if isinstance(value, ast.Attribute) else None
        return self.key(value, names) if text is not None and text.startswith("self.") else None  # type: ignore[arg-type]

    def _part(self, expr: ast.Attribute | ast.Subscript, text: str, names: dict[str, str]) -> str | None:
        """`state.optimizer` of a state that was made of `optimizer` in the same function."""
        base = dotted(expr.value) or ""
        if base.partition(".")[0] in names and not base.startswith("self."):
            return None
        value = self.held.of(expr.value, self.symbols.scope(expr)).get(text.removeprefix(base))
        return self.key(value, names) if value is not None else None

    def parts(self, name: str, expr: ast.expr, scope: Scope, names: dict[str, str]) -> dict[str, str]:
        """The keys of what a parameter holds that is given this object: "state.optimizer" -> "optimizer"."""
        text = dotted(expr) or ""
        known = {name + n.removeprefix(text): k for n, k in names.items() if n.startswith((f"{text}.", f"{text}["))}
        held = {name + part: self.key(value, names) for part, value in self.held.of(expr, scope).items()}
        return {n: k for n, k in {**held, **known}.items() if k != "*"}

    def items(self, expr: ast.expr, scope: Scope, names: dict[str, str]) -> list[Item]:
        """What a loop over an expression goes through, where the file shows it; else nothing.

        `(opt_g, opt_d)`, `self.optimizers.values()`, `enumerate(opts)`, `zip(opts, nets)`: a key for each name, None
        for what has none, a list for what is unpacked.
        """
        if isinstance(expr, ast.Call):
            name = last_name(expr.func)
            if name in ("values", "items") and isinstance(expr.func, ast.Attribute) and not expr.args:
                return self._entries(expr.func.value, scope, names, pairs=name == "items")
            inside = [self.items(a, scope, names) for a in expr.args]
            if name == "zip" and inside and all(inside) and len({len(i) for i in inside}) == 1:
                return [list(each) for each in zip(*inside, strict=True)]
            if name == "enumerate" and inside:
                return [[None, each] for each in inside[0]]
            return inside[0] if name in ("list", "tuple", "reversed", "chain") and len(inside) == 1 else []
        if isinstance(expr, ast.Tuple | ast.List):
            return [self._item(e, names) for e in expr.elts]
        return self._entries(expr, scope, names)

    def _item(self, expr: ast.expr, names: dict[str, str]) -> Item:
        if isinstance(expr, ast.Tuple | ast.List):
            return [self._item(e, names) for e in expr.elts]
        key = self.key(expr, names)
        return key if key != "*" else None

    def _entries(self, expr: ast.expr, scope: Scope, names: dict[str, str], *, pairs: bool = False) -> list[Item]:
        """The entries of a list or dictionary that has a name."""
        text = dotted(expr)
        bindings = self.symbols.bindings(text, scope) if text is not None else []
        if len(bindings) != 1 or bindings[0].loop or bindings[0].place is not None:
            return []
        table, home = bindings[0].value, self.key(expr, names)
        found: list[Item] = []
        if isinstance(table, ast.Dict):
            for key, value in zip(table.keys, table.values, strict=True):
                if not isinstance(key, ast.Constant):
                    return []
                entry = self._entry(value, f"{home}[{key.value!r}]", bindings[0].scope is scope)
                found.append([None, entry] if pairs else entry)
        elif isinstance(table, ast.List | ast.Tuple) and not pairs:
            found = [self._entry(v, f"{home}[{i}]", bindings[0].scope is scope) for i, v in enumerate(table.elts)]
        return found

    def _entry(self, value: ast.expr, place: str, same: bool) -> Item:
        """The name of an object that is in a list as well, else its place there."""
        text = dotted(value)
        if isinstance(value, ast.Tuple | ast.List):
            return [self._entry(v, f"{place}[{i}]", same) for i, v in enumerate(value.elts)]
        return text if text is not None and (same or text.startswith("self.")) else place


def given_names(target: ast.expr, item: Item) -> dict[str, str]:
    """The keys that the names of a loop target get from one item."""
    if isinstance(target, ast.Name) and isinstance(item, str):
        return {target.id: item}
    if isinstance(target, ast.Tuple | ast.List) and isinstance(item, list) and len(target.elts) == len(item):
        return {n: k for t, i in zip(target.elts, item, strict=True) for n, k in given_names(t, i).items()}
    return {}

"""Classes and functions of this file that are looked up in a table: `ENCODERS[name](dim)`, `MODELS.build(cfg)`."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from deploychain.audit.astnames import Ref, Scope, dotted, last_name, returns
from deploychain.audit.tree import walk

if TYPE_CHECKING:
    from deploychain.audit.symbols import Symbols

_MOST = 6  # a table with more entries says nothing about one call
_LOOK_UP = frozenset({"get", "pop", "lookup", "resolve", "get_class", "__getitem__"})
_BUILD = frozenset({"build", "create", "make", "build_from_cfg", "instantiate"})
_REGISTER = frozenset({"register", "register_module", "register_class", "add", "registered", "register_model"})


class Registries:
    """Tables that decorators, assignments or a registry object fill."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._made: dict[int, list[Ref]] = {}

    def made(self, call: ast.Call, scope: Scope) -> list[Ref]:
        """What a call of an entry of a table makes: the construction of each class that may be looked up."""
        func = call.func
        if not self.symbols.classes or not isinstance(func, ast.Subscript | ast.Call | ast.Attribute):
            return []
        if isinstance(func, ast.Attribute) and func.attr not in _BUILD:
            return []
        if id(call) not in self._made:
            self.symbols.kept.append(call)
            self._made[id(call)] = []
            self._made[id(call)] = self._constructions(call, scope)
        return self._made[id(call)]

    def functions(self, item: ast.Subscript, scope: Scope) -> list[Scope]:
        """The functions that `_LOSSES[kind]` may be, of a table that a decorator fills."""
        return [s for s in self._entries(item.value, item.slice, scope) if not s.is_class]

    def _entries(self, table: ast.expr, key: ast.expr | None, scope: Scope) -> list[Scope]:
        text = dotted(table)
        entries = self._tables.get(text.rpartition(".")[2], {}) if text is not None else {}
        if not entries:
            return []
        name = self.symbols.const(key, scope) if key is not None else None
        chosen = [entries[name]] if isinstance(name, str) and name in entries else list(entries.values())
        return chosen if len(chosen) <= _MOST else []

    def _constructions(self, call: ast.Call, scope: Scope) -> list[Ref]:
        func = call.func
        if isinstance(func, ast.Attribute):  # MODELS.build(cfg)
            table, key = func.value, call.args[0] if call.args else None
        elif isinstance(func, ast.Subscript):
            table, key = func.value, func.slice
        elif isinstance(func, ast.Call) and isinstance(func.func, ast.Attribute) and func.func.attr in _LOOK_UP:
            table, key = func.func.value, func.args[0] if func.args else None
        else:
            return []
        given = call.args if not isinstance(func, ast.Attribute) else []
        keywords = call.keywords if not isinstance(func, ast.Attribute) else []
        return [
            Ref(ast.copy_location(ast.Call(ast.Name(cls.name, ast.Load()), given, keywords), call), scope)
            for cls in self._entries(table, key, scope)
            if cls.is_class
        ]

    @cached_property
    def _tables(self) -> dict[str, dict[str, Scope]]:
        """Name of the table -> key (or the name of the class) -> class or function."""
        tables: dict[str, dict[str, Scope]] = {}
        functions = (f for f in self.symbols.function_scopes if f.owner is None)
        for cls in (*self.symbols.classes.values(), *functions):
            for decorator in getattr(cls.node, "decorator_list", ()):
                table, key = self._registered_in(decorator)
                if table:
                    tables.setdefault(table, {})[key or cls.name] = cls
        for node in self.symbols.nodes(ast.Assign):
            target = node.targets[0]
            if isinstance(node.value, ast.Dict) and dotted(target) is not None:
                self._written(dotted(target) or "", node.value, tables)
            put = self.symbols.classes.get(last_name(node.value)) if isinstance(target, ast.Subscript) else None
            if put is not None and isinstance(target, ast.Subscript):
                name = getattr(target.slice, "value", None)
                table = (dotted(target.value) or "").rpartition(".")[2]
                tables.setdefault(table, {})[name if isinstance(name, str) else put.name] = put
        for call in self.symbols.calls:  # MODELS.register("net", Net), register("net", Net)
            if last_name(call.func) in _REGISTER and isinstance(call.func, ast.Attribute):
                for arg in call.args:
                    put = self.symbols.classes.get(last_name(arg))
                    if put is not None:
                        tables.setdefault(last_name(call.func.value), {})[put.name] = put
        return tables

    def _written(self, text: str, table: ast.Dict, tables: dict[str, dict[str, Scope]]) -> None:
        for key, value in zip(table.keys, table.values, strict=True):
            cls = self.symbols.classes.get(value.id) if isinstance(value, ast.Name) else None
            if cls is not None and isinstance(key, ast.Constant) and isinstance(key.value, str):
                tables.setdefault(text.rpartition(".")[2], {})[key.value] = cls

    def _registered_in(self, decorator: ast.expr) -> tuple[str, str]:
        """(table, key) of `@encoder("small")`, `@MODELS.register_module()`, `@register`."""
        func = decorator.func if isinstance(decorator, ast.Call) else decorator
        args = decorator.args if isinstance(decorator, ast.Call) else []
        key = args[0].value if args and isinstance(args[0], ast.Constant) and isinstance(args[0].value, str) else ""
        if isinstance(func, ast.Attribute):
            return (last_name(func.value), key) if func.attr in _REGISTER else ("", "")
        found = [s for s in self.symbols.functions.get(last_name(func), ()) if s.owner is None]
        if not found:
            return "", ""
        for node in walk(found[-1].node):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(target, ast.Subscript) and dotted(target.value) is not None:
                return last_name(target.value), key
            if isinstance(node, ast.Call) and last_name(node.func) in ("setdefault", "update"):
                return (last_name(node.func.value) if isinstance(node.func, ast.Attribute) else ""), key
        return "", ""


def entry_results(symbols: Symbols, func: ast.expr, scope: Scope) -> list[Ref]:
    """What an entry of a table of lambdas and functions returns: `LOSSES[kind](**kw)`."""
    if not isinstance(func, ast.Subscript):
        return []
    found: list[Ref] = []
    for ref in symbols.resolve(func, scope):
        if isinstance(ref.expr, ast.Lambda):
            found.append(Ref(ref.expr.body, symbols.scope(ref.expr.body)))
        elif isinstance(ref.expr, ast.Name):
            function = symbols.local_function(ref.expr, ref.scope)
            found += [Ref(value, function) for value in returns(function)] if function is not None else []
    return found

"""What is looked up in a table and called: `ENCODERS[name](dim)`, `MODELS.build(cfg)`, `LOSSES.get(kind)()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from deploychain.audit.astnames import Ref, Scope, argument_for, dotted, last_name, returns
from deploychain.audit.tree import walk

if TYPE_CHECKING:
    from deploychain.audit.symbols import Symbols

_MOST = 6  # a table with more entries says nothing about one call
_LOOK_UP = frozenset({"get", "pop", "lookup", "resolve", "get_class", "__getitem__"})
_BUILD = frozenset({"build", "create", "make", "build_from_cfg", "instantiate"})
_REGISTER = frozenset({"register", "register_module", "register_class", "add", "registered", "register_model"})
_TYPE = ("type", "name", "_target_")  # of `{"type": "Focal", "gamma": 2}`
Table = dict[str, Ref]


class Registries:
    """Tables that decorators, assignments or a registry object fill with classes and functions."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._made: dict[int, list[Ref]] = {}

    def made(self, call: ast.Call, scope: Scope) -> list[Ref]:
        """What a call of an entry of a table makes: instances of each class, and what each function returns."""
        func = call.func
        if not isinstance(func, ast.Subscript | ast.Call | ast.Attribute):
            return []
        if isinstance(func, ast.Attribute) and func.attr not in _BUILD:
            return []
        if id(call) not in self._made:
            self.symbols.kept.append(call)
            self._made[id(call)] = []
            self._made[id(call)] = [r for e in self._called(call, scope) for r in self._result(e, call, scope)]
        return self._made[id(call)]

    def functions(self, item: ast.Subscript, scope: Scope) -> list[Scope]:
        """The functions that `_LOSSES[kind]` may be, of a table that a decorator fills."""
        found = [self._function(e) for e in self._entries(item.value, item.slice, scope)]
        return [f for f in found if f is not None]

    def chosen(self, looked_up: ast.expr, scope: Scope) -> Ref | None:
        """The entry that `LOSSES[kind]`, `LOSSES.get(kind)` is, where the file says which one."""
        table, key = _looked_up(looked_up)
        name = self.symbols.const(key, scope) if table is not None and key is not None else None
        entries = self._table(table) if table is not None and isinstance(name, str) else {}
        return entries.get(str(name))

    def left_out(self, scope: Scope) -> bool:
        """A registered function or class that this file never looks up, though it looks up others of the table."""
        homes = {t for t, entries in self._tables.items() for e in entries.values() if last_name(e.expr) == scope.name}
        if not homes or self.symbols.calls_ending(scope.name):
            return False
        asked = [n for n in self.symbols.nodes(ast.Subscript, ast.Call) if (t := _looked_up(n)[0]) is not None
                 and last_name(t) in homes and not isinstance(getattr(n, "ctx", None), ast.Store)]  # fmt: skip
        chosen = [self.chosen(n, self.symbols.scope(n)) for n in asked]
        return bool(chosen) and all(c is not None and last_name(c.expr) != scope.name for c in chosen)

    def _table(self, table: ast.expr) -> Table:
        text = dotted(table)
        return self._tables.get(text.rpartition(".")[2], {}) if text is not None else {}

    def _entries(self, table: ast.expr, key: ast.expr | None, scope: Scope) -> list[Ref]:
        entries = self._table(table)
        if not entries:
            return []
        name = self._key(key, scope) if key is not None else None
        chosen = [entries[name]] if name is not None and name in entries else list(entries.values())
        return chosen if len(chosen) <= _MOST else []

    def _key(self, key: ast.expr, scope: Scope) -> str | None:
        """The word that is asked for: the key itself, or the type that a configuration names."""
        name = self.symbols.const(key, scope)
        if isinstance(name, str):
            return name
        for word in _TYPE:
            for ref in self.symbols.configs.values(key, word, scope, 4, frozenset()):
                value = self.symbols.const(ref.expr, ref.scope)
                if isinstance(value, str):
                    return value
        return None

    def _called(self, call: ast.Call, scope: Scope) -> list[Ref]:
        """The entries that a call may run."""
        func = call.func
        if isinstance(func, ast.Attribute):  # MODELS.build(cfg)
            return self._entries(func.value, call.args[0] if call.args else None, scope)
        table, key = _looked_up(func)
        return self._entries(table, key, scope) if table is not None else []

    def _result(self, entry: Ref, call: ast.Call, scope: Scope) -> list[Ref]:
        function = self._function(entry)
        if function is not None:
            return [Ref(value, function) for value in returns(function)]
        built = isinstance(call.func, ast.Attribute)
        given, keywords = ([], []) if built else (call.args, call.keywords)
        return [Ref(ast.copy_location(ast.Call(entry.expr, given, keywords), call), scope)]

    def _function(self, entry: Ref) -> Scope | None:
        return self.symbols.local_function(entry.expr, entry.scope) if isinstance(entry.expr, ast.Name) else None

    # -- what fills the tables ----------------------------------------------------------------------------------

    @cached_property
    def _tables(self) -> dict[str, Table]:
        """Name of the table -> key (or the name of the class) -> class or function."""
        tables: dict[str, Table] = {}
        functions = (f for f in self.symbols.function_scopes if f.owner is None)
        for scope in (*self.symbols.classes.values(), *functions):
            for decorator in getattr(scope.node, "decorator_list", ()):
                table, key = self._registered_in(decorator)
                if table:
                    tables.setdefault(table, {})[key or scope.name] = self._named(scope)
        for node in self.symbols.nodes(ast.Assign):
            target = node.targets[0]
            if isinstance(node.value, ast.Dict) and dotted(target) is not None:
                self._written(dotted(target) or "", node.value, tables)
            elif isinstance(target, ast.Subscript):
                table = (dotted(target.value) or "").rpartition(".")[2]
                for key, cls in self._put(target, node.value):
                    tables.setdefault(table, {})[key] = self._named(cls)
        for call in self.symbols.calls:  # MODELS.register("net", Net), LOSSES.register("bce", nn.BCELoss)
            if last_name(call.func) in _REGISTER and isinstance(call.func, ast.Attribute) and call.args:
                put = self.symbols.classes.get(last_name(call.args[-1]))
                scope = self.symbols.scope(call)
                word, entries = getattr(call.args[0], "value", None), tables.setdefault(last_name(call.func.value), {})
                if put is not None:
                    entries[word if isinstance(word, str) else put.name] = self._named(put)
                elif isinstance(word, str) and self.symbols.qual(call.args[-1], scope):
                    entries[word] = Ref(call.args[-1], scope)
        return tables

    def _named(self, scope: Scope) -> Ref:
        return Ref(ast.copy_location(ast.Name(scope.name, ast.Load()), scope.node), self.symbols.module)

    def _put(self, target: ast.Subscript, value: ast.expr) -> Iterator[tuple[str, Scope]]:
        """`MODELS["net"] = Net`; `registry[cls.__name__] = cls` of each subclass."""
        key = target.slice
        cls = self.symbols.classes.get(last_name(value))
        if cls is not None:
            yield key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else cls.name, cls
            return
        home = self.symbols.scope(target)
        if home.name == "__init_subclass__" and isinstance(value, ast.Name) and value.id == "cls":
            lower = isinstance(key, ast.Call) and last_name(key.func) == "lower"
            for below in self.symbols.classes.values():
                if home.owner is not below and any(home.owner is base for base in self.symbols.bases(below)):
                    yield below.name.lower() if lower else below.name, below

    def _written(self, text: str, table: ast.Dict, tables: dict[str, Table]) -> None:
        for key, value in zip(table.keys, table.values, strict=True):
            cls = self.symbols.classes.get(value.id) if isinstance(value, ast.Name) else None
            if cls is not None and isinstance(key, ast.Constant) and isinstance(key.value, str):
                tables.setdefault(text.rpartition(".")[2], {})[key.value] = self._named(cls)

    def _registered_in(self, decorator: ast.expr) -> tuple[str, str]:
        """(table, key) of `@encoder("small")`, `@register(LOSSES, "bce")`, `@MODELS.register_module()`, `@register`."""
        func = decorator.func if isinstance(decorator, ast.Call) else decorator
        args = decorator.args if isinstance(decorator, ast.Call) else []
        words = [a.value for a in args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        key = words[0] if words else ""
        if isinstance(func, ast.Attribute):
            return (last_name(func.value), key) if func.attr in _REGISTER else ("", "")
        found = [s for s in self.symbols.functions.get(last_name(func), ()) if s.owner is None]
        for node in walk(found[-1].node) if found else ():
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            table: ast.expr | None = None
            if isinstance(target, ast.Subscript) and dotted(target.value) is not None:
                table = target.value
            elif isinstance(node, ast.Call) and last_name(node.func) in ("setdefault", "update"):
                table = node.func.value if isinstance(node.func, ast.Attribute) else None
            if table is None:
                continue
            given = (
                argument_for(decorator, found[-1], table.id)
                if isinstance(table, ast.Name) and isinstance(decorator, ast.Call)
                else None
            )
            return last_name(given if given is not None else table), key
        return "", ""


def _looked_up(expr: ast.expr) -> tuple[ast.expr | None, ast.expr | None]:
    """The table and the key of `LOSSES[kind]`, `LOSSES.get(kind)`."""
    if isinstance(expr, ast.Subscript):
        return expr.value, expr.slice
    if isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and expr.func.attr in _LOOK_UP:
        return expr.func.value, expr.args[0] if expr.args else None
    return None, None


def entry_results(symbols: Symbols, call: ast.Call, scope: Scope) -> list[Ref]:
    """What an entry of a table of lambdas and functions returns: `LOSSES[kind](**kw)`."""
    func = call.func
    if not isinstance(func, ast.Subscript):
        return []
    entries = [r for r in symbols.resolve(func, scope) if r.expr is not func] or _every_entry(symbols, func, scope)
    found: list[Ref] = []
    for ref in entries:
        if isinstance(ref.expr, ast.Lambda):
            found.append(Ref(ref.expr.body, symbols.scope(ref.expr.body)))
        elif isinstance(ref.expr, ast.Name) and (function := symbols.local_function(ref.expr, ref.scope)) is not None:
            found += [Ref(value, function) for value in returns(function)]
        elif len(entries) > 1:  # `nullcontext` beside a lambda: what it makes
            found.append(Ref(ast.copy_location(ast.Call(ref.expr, call.args, call.keywords), call), scope))
    return found if len(found) > 1 or entries[1:] == [] else []


def _every_entry(symbols: Symbols, item: ast.Subscript, scope: Scope) -> list[Ref]:
    """All that a table holds whose key is not known, where some of it is a function of this file."""
    tables = [r for r in symbols.resolve(item.value, scope) if isinstance(r.expr, ast.Dict)]
    entries = [Ref(v, t.scope) for t in tables for v in t.expr.values]  # type: ignore[attr-defined]
    own = any(isinstance(e.expr, ast.Lambda) or symbols.local_function(e.expr, e.scope) is not None for e in entries)
    return entries if own and len(entries) <= _MOST else []

"""Objects and functions that a loop runs one after the other: `for hook in self.hooks: hook.after_backward(self)`.

Where the file shows what is in the list (a literal, `append`, a method or decorator that appends, an argument of the
constructor), each round of the loop is known. Else every class with a method of that name may be in it, in any order.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from deploychain.audit.astnames import Ref, Scope, argument_for, constructed, dotted, keyword, last_name
from deploychain.audit.inheritance import method_of
from deploychain.audit.symbols import Symbols
from deploychain.audit.tree import walk

_HOOK = re.compile(r"_?(on|after|before|pre|post)_|.*_(hook|callback)$|.*_(start|end|begin)$")
_WRAPPERS = frozenset({"list", "tuple", "enumerate", "iter", "reversed", "sorted"})
_ADDS = frozenset({"append", "insert", "extend", "add"})
_MOST = 8  # a longer list is not written out
_NOTHING: Mapping[str, str] = {}


def unordered(symbols: Symbols, call: ast.Call, scope: Scope, said: Mapping[str, str] | None = None) -> list[Scope]:
    """The methods of classes of this file that a call to each of several unknown objects may run.

    `for hook in self.hooks: hook.after_backward(self)`, `getattr(callback, event)(self)`. What `event` is may be known
    from the call of the function (`said`); without that every method with the name of a hook is taken.
    """
    func = call.func
    if isinstance(func, ast.Attribute):
        name: str | None = func.attr
        each = func.value
    elif isinstance(func, ast.Call) and last_name(func.func) == "getattr" and len(func.args) >= 2:
        each = func.args[0]
        name = _text(func.args[1], said or _NOTHING)
        if said is not None and name is None:
            return []
    else:
        return []
    text = dotted(each)
    if text is None or not any(b.loop for b in symbols.bindings(text, scope)):
        return []
    names = [n for n in symbols.functions if _HOOK.match(n)] if name is None else [name] * bool(_HOOK.match(name))
    return [s for n in names for s in symbols.functions.get(n, ()) if s.owner is not None and s is not scope]


def unscales(function: Scope) -> bool:
    return any(isinstance(n, ast.Attribute) and n.attr in ("unscale_", "unscale") for n in walk(function.node))


class HookLists:
    """What the loops of a file go through."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._members: dict[int, list[Scope]] = {}
        self._variables: dict[ast.AST, str] = {}

    def variable(self, loop: ast.For | ast.AsyncFor) -> str:
        """The name that is called in a loop: "hook" of `for hook in hooks`, "fn" of `for name, fn in table.items()`."""
        known = self._variables.get(loop)
        if known is None:
            target = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) and loop.target.elts else loop.target
            name = target.id if isinstance(target, ast.Name) else ""
            is_called = name and any(_called(c) == name for s in loop.body for c in walk(s))
            known = self._variables[loop] = name if is_called else ""
        return known

    def members(self, loop: ast.For | ast.AsyncFor, scope: Scope, said: Mapping[str, str] = _NOTHING) -> list[Scope]:
        """The classes and functions of this file that a loop goes through, in its order; empty where unknown."""
        if not self.symbols.function_scopes or not self.variable(loop):
            return []
        if said:
            return self._of_loop(loop, scope, said)
        if id(loop) not in self._members:
            self._members[id(loop)] = self._of_loop(loop, scope, said)
        return self._members[id(loop)]

    def possible(self, loop: ast.For | ast.AsyncFor, scope: Scope) -> list[Scope]:
        """The members of a loop; over `self.events[name]` those under any name."""
        found = self.members(loop, scope)
        key = loop.iter.slice if isinstance(loop.iter, ast.Subscript) and not found else None
        if not isinstance(key, ast.Name) or not isinstance(loop.iter, ast.Subscript):
            return found
        for table in self.symbols.resolve(loop.iter.value, scope):
            for name in table.expr.keys if isinstance(table.expr, ast.Dict) else ():
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    found = found + self.members(loop, scope, {key.id: name.value})
        return found

    def run_by(self, call: ast.Call, name: str, member: Scope, said: Mapping[str, str] | None) -> list[Scope]:
        """What a call in the loop runs when the loop variable `name` is this member."""
        if _called(call) != name:
            return []
        if isinstance(call.func, ast.Name):
            found = method_of(self.symbols, member, "__call__") if member.is_class else member
            return [found] if found is not None else []
        if not member.is_class:
            return []
        if isinstance(call.func, ast.Attribute):
            asked: str | None = call.func.attr
        else:
            assert isinstance(call.func, ast.Call)
            asked = _text(call.func.args[1], said or _NOTHING)
            if asked is None and said is None:  # any of them
                return [f for f in self.symbols.function_scopes if f.owner is member]
        found = method_of(self.symbols, member, asked) if asked else None
        return [found] if found is not None else []

    def _of_loop(self, loop: ast.For | ast.AsyncFor, scope: Scope, said: Mapping[str, str]) -> list[Scope]:
        values, backwards, order = loop.iter, False, None
        while isinstance(values, ast.Call):
            name = last_name(values.func)
            if name in _WRAPPERS and values.args:
                if name == "sorted":
                    order = values
                backwards ^= name == "reversed"
                values = values.args[0]
            elif name in ("values", "items") and isinstance(values.func, ast.Attribute) and not values.args:
                values = values.func.value
            else:
                break
        found = list(self._held(values, scope, said, 4))
        text = dotted(values.value if isinstance(values, ast.Subscript) else values)
        if text is not None:
            found += self._added(text.rpartition(".")[2].partition("[")[0], values, said)
            order = order or self._sort(text)
        if not found or len(found) > _MOST:
            return []
        if order is not None:
            return self._sorted(found, order)
        return found[::-1] if backwards else found

    def _held(self, expr: ast.expr, scope: Scope, said: Mapping[str, str], depth: int) -> Iterator[Scope]:
        """The members of a list that is written out, by name or as an argument of a constructor."""
        if depth == 0:
            return
        key = _text(expr.slice, said) if isinstance(expr, ast.Subscript) else None
        for ref in self.symbols.resolve(expr, scope)[:4] if key is None else self._entry(expr, key, scope):
            inside = ref.expr
            if isinstance(inside, ast.List | ast.Tuple):
                for element in inside.elts:
                    value = element.value if isinstance(element, ast.Starred) else element
                    if isinstance(element, ast.Starred):
                        yield from self._held(value, ref.scope, said, depth - 1)
                    else:
                        yield from self._member(value, ref.scope)
            elif isinstance(inside, ast.Dict):
                for value in inside.values:
                    yield from self._member(value, ref.scope)
            elif isinstance(inside, ast.BinOp) and isinstance(inside.op, ast.Add):
                yield from self._held(inside.left, ref.scope, said, depth - 1)
                yield from self._held(inside.right, ref.scope, said, depth - 1)
            elif isinstance(inside, ast.ListComp | ast.GeneratorExp):
                if dotted(inside.elt) == dotted(inside.generators[0].target):
                    yield from self._held(inside.generators[0].iter, ref.scope, said, depth - 1)
            elif isinstance(inside, ast.Call) and last_name(inside.func) in _WRAPPERS and inside.args:
                yield from self._held(inside.args[0], ref.scope, said, depth - 1)

    def _entry(self, expr: ast.expr, key: str, scope: Scope) -> list[Ref]:
        """`self.events[name]` of a table that is written out, where the name is known from the call."""
        assert isinstance(expr, ast.Subscript)
        tables = self.symbols.resolve(expr.value, scope)
        return [r for t in tables if isinstance(t.expr, ast.Dict) for r in self.symbols.configs.held(t, key)]

    def _member(self, expr: ast.expr, scope: Scope) -> Iterator[Scope]:
        symbols = self.symbols
        if isinstance(expr, ast.Call) and last_name(expr.func) == "partial" and expr.args:
            expr = expr.args[0]
        if isinstance(expr, ast.Name | ast.Attribute):
            function = symbols.local_function(expr, scope)
            if function is not None:
                yield function
                return
        for ref in symbols.resolve(expr, scope)[:2]:
            cls = symbols.classes.get(constructed(ref.expr)) if isinstance(ref.expr, ast.Call) else None
            if cls is not None:
                yield cls
                return

    def _added(self, leaf: str, values: ast.expr, said: Mapping[str, str]) -> Iterator[Scope]:
        """`self.hooks.append(Clip())`, `trainer.add_hook(Clip())`, `@on("after_backward")`: what is put in later."""
        symbols = self.symbols
        wanted = _text(values.slice, said) if isinstance(values, ast.Subscript) else None
        for call in symbols.calls:
            if not (isinstance(call.func, ast.Attribute) and call.func.attr in _ADDS and call.args):
                continue
            into = call.func.value
            table, key = (into.value, into.slice) if isinstance(into, ast.Subscript) else (into, None)
            if isinstance(table, ast.Call) and last_name(table.func) == "setdefault" and table.args:
                key = table.args[0]
                table = table.func.value if isinstance(table.func, ast.Attribute) else table
            if last_name(table) != leaf:
                continue
            scope, value = symbols.scope(call), call.args[-1]
            text = dotted(key) if key is not None else None
            adder = symbols.parameter_scope(value.id, scope) if isinstance(value, ast.Name) else None
            if adder is None:
                if call.func.attr == "extend":
                    yield from self._held(value, scope, said, 2)
                elif wanted is None or key is None or _text(key, said) in (wanted, None):
                    yield from self._member(value, scope)
                continue
            assert isinstance(value, ast.Name)
            for site in symbols.call_sites(adder)[:_MOST]:
                given, at = argument_for(site, adder, value.id), argument_for(site, adder, text) if text else None
                if given is not None and (wanted is None or at is None or _text(at, said) in (wanted, None)):
                    yield from self._member(given, symbols.scope(site))
            yield from self._decorated(adder, text, wanted)

    def _decorated(self, adder: Scope, key: str | None, wanted: str | None) -> Iterator[Scope]:
        """Functions under a decorator that appends them."""
        outer = (
            adder if adder.parent is None or not adder.parent.parameters or adder.owner is not None else adder.parent
        )
        for function in sorted(self.symbols.function_scopes, key=lambda f: getattr(f.node, "lineno", 0)):
            for decorator in getattr(function.node, "decorator_list", ()):
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                if last_name(called) != outer.name:
                    continue
                given = argument_for(decorator, outer, key) if isinstance(decorator, ast.Call) and key else None
                if wanted is None or given is None or _text(given, _NOTHING) in (wanted, None):
                    yield function

    def _sort(self, text: str) -> ast.Call | None:
        """`self.hooks.sort(key=...)`, or `self.hooks = sorted(hooks, key=...)`."""
        leaf = text.rpartition(".")[2]
        for call in self.symbols.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "sort" and last_name(call.func.value) == leaf:
                return call
            if last_name(call.func) == "sorted" and call.args:
                target = self.symbols.parent.get(call)
                if isinstance(target, ast.Assign) and last_name(target.targets[0]) == leaf:
                    return call
        return None

    def _sorted(self, found: list[Scope], order: ast.Call) -> list[Scope]:
        """By a constant of each class; where that is unknown, in the order that does no harm."""
        key = keyword(order, "key")
        body = key.body if isinstance(key, ast.Lambda) else None
        sign = -1 if isinstance(body, ast.UnaryOp) and isinstance(body.op, ast.USub) else 1
        field = body.operand if isinstance(body, ast.UnaryOp) else body
        if isinstance(key, ast.Call) and last_name(key.func) == "attrgetter" and key.args:
            name = _text(key.args[0], _NOTHING) or ""
        else:
            name = field.attr if isinstance(field, ast.Attribute) else ""
        ranks = [self._constant(member, name) for member in found]
        if not name or any(r is None for r in ranks):
            return sorted(found, key=lambda m: not unscales(m))
        down = self.symbols.const(keyword(order, "reverse") or ast.Constant(False), self.symbols.module) is True
        ranked = sorted(range(len(found)), key=lambda i: sign * (ranks[i] or 0), reverse=down)
        return [found[i] for i in ranked]

    def _constant(self, cls: Scope, name: str) -> float | None:
        for base in self.symbols.bases(cls):
            for text in (name, f"self.{name}"):
                for binding in base.bindings.get(text, []):
                    value = self.symbols.const(binding.value, binding.scope) if binding.value is not None else None
                    return float(value) if isinstance(value, int | float) else None
        return None


def _called(node: ast.AST) -> str | None:
    """The name whose method a call runs, or that it calls."""
    if not isinstance(node, ast.Call):
        return None
    func = node.func
    if isinstance(func, ast.Name):
        return func.id
    if isinstance(func, ast.Attribute):
        return func.value.id if isinstance(func.value, ast.Name) else None
    if isinstance(func, ast.Call) and last_name(func.func) == "getattr" and len(func.args) >= 2:
        return func.args[0].id if isinstance(func.args[0], ast.Name) else None
    return None


def _text(expr: ast.expr, said: Mapping[str, str]) -> str | None:
    """A string that is written there, or that the function was called with."""
    if isinstance(expr, ast.Constant):
        return expr.value if isinstance(expr.value, str) else None
    if isinstance(expr, ast.Name):
        return said.get(expr.id)
    if isinstance(expr, ast.JoinedStr):
        parts = [_text(v.value if isinstance(v, ast.FormattedValue) else v, said) for v in expr.values]
        return "".join(p for p in parts if p is not None) if None not in parts else None
    return None

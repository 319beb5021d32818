"""Calls that write an ONNX file, in whatever form: exporters, methods, partials, settings in a dictionary."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from deploychain.audit.astnames import UNKNOWN, Ref, Scope, keyword, last_name, returns
from deploychain.audit.symbols import Symbols
from deploychain.audit.tables import value_of
from deploychain.audit.tree import walk
from deploychain.audit.variants import View, viewed, views

_EXPORTERS = frozenset({"torch.onnx.export", "torch.onnx.utils.export"})
# Positions in the signature that had everything positional (torch < 2.5).
_POSITION = {"model": 0, "args": 1, "f": 2, "input_names": 6, "output_names": 7, "opset_version": 9, "dynamic_axes": 11}


class Export:
    """One call that writes an ONNX file, and what it may have been given."""

    def __init__(
        self,
        symbols: Symbols,
        call: ast.Call,
        *,
        method: bool = False,
        bound: ast.Call | None = None,
        view: View | None = None,
    ) -> None:
        self.symbols = symbols
        self.call = call
        self.scope = symbols.scope(call)
        self.method = method  # module.to_onnx(path, sample, ...)
        self.bound = bound  # functools.partial(torch.onnx.export, ...)
        self.view = view or {}  # what the expressions in it stand for this time

    @cached_property
    def variants(self) -> list[Export]:
        """The call as each of its callers, turns of a loop, table entries or subclasses makes it."""
        made = [{}] if self.bound is not None else views(self.symbols, self.call)
        return [Export(self.symbols, self.call, method=self.method, bound=self.bound, view=v) for v in made]

    def written(self, name: str) -> ast.expr | None:
        """The expression that an argument is written as in the call."""
        value = keyword(self.call, name)
        return value if value is not None or self.bound is None else keyword(self.bound, name)

    def given(self, name: str) -> Ref | None:
        """The expression that is an argument this time."""
        value = self.written(name)
        if value is not None:
            return viewed(self.symbols, self.view, value, self.symbols.scope(value))
        if self.method:
            return None
        place = _POSITION.get(name, 99)
        args = [*(self.bound.args[1:] if self.bound is not None else ()), *self.call.args]
        if place < len(args) and not any(isinstance(a, ast.Starred) for a in args[: place + 1]):
            return viewed(self.symbols, self.view, args[place], self.scope)
        return None

    def settled(self, *names: str) -> bool:
        """These arguments are known for this time alone, not out of what all callers or subclasses give."""
        for name in names:
            written, given = self.written(name), self.given(name)
            if written is None or (given is not None and given.expr is not written):
                continue
            for name_in_it in (p.id for p in walk(written) if isinstance(p, ast.Name)):
                bindings = self.symbols.bindings(name_in_it, self.scope)
                if any(b.scope is not self.symbols.module for b in bindings):
                    return False
                if not bindings and self.symbols.parameter_scope(name_in_it, self.scope) is not None:
                    return False
        return True

    def refs(self, name: str) -> list[Ref]:
        """Everything that an argument may be, settings in a `**dictionary` included."""
        given = self.given(name)
        if given is not None:
            return self.symbols.resolve(*given)
        return [r for rest in self.rest() for r in value_of(self.symbols, rest.expr, name, rest.scope)]

    def values(self, name: str) -> list[object]:
        """The Python values that an argument may have, as far as they are known (a loop variable has several)."""
        found: list[object] = []
        given = self.given(name)
        if given is not None:
            value = self.symbols.const(*given)
            if value is not UNKNOWN:
                return [value]
        for ref in self.refs(name):
            value = self.symbols.const(ref.expr, ref.scope)
            found += self._numbers(ref) if value is UNKNOWN else [value]
        return found

    def _numbers(self, ref: Ref) -> list[object]:
        """`max(MIN, 13)`, `int(os.environ.get("OPSET", "17"))`, `for opset in (13, 17)`."""
        e = ref.expr
        if isinstance(e, ast.Name):
            bindings = self.symbols.bindings(e.id, ref.scope)
            lists = [self.symbols.const(b.value, b.scope) for b in bindings if b.loop]
            return [v for values in lists if isinstance(values, list) for v in values]
        if isinstance(e, ast.Subscript):  # `OPSETS[target]` where the target is not known
            tables = [r for r in self.symbols.resolve(e.value, ref.scope) if isinstance(r.expr, ast.Dict)]
            entries = [self.symbols.const(v, r.scope) for r in tables for v in getattr(r.expr, "values", [])]
            return [v for v in entries if isinstance(v, int)]
        if not isinstance(e, ast.Call) or not e.args:
            return []
        name = last_name(e.func)
        if name in ("min", "max"):
            values = [self.symbols.const(a, ref.scope) for a in e.args]
            if all(isinstance(v, int) for v in values):
                return [min(values) if name == "min" else max(values)]
        if name == "int":
            inner = [self.symbols.const(r.expr, r.scope) for r in self.symbols.resolve(e.args[0], ref.scope)]
            inner += [
                self.symbols.const(r.expr.args[1], r.scope)
                for r in self.symbols.resolve(e.args[0], ref.scope)
                if isinstance(r.expr, ast.Call)
                and last_name(r.expr.func) in ("get", "getenv")
                and len(r.expr.args) == 2
            ]
            return [int(v) for v in inner if isinstance(v, int) or (isinstance(v, str) and v.isdigit())]
        return []

    def rest(self) -> list[Ref]:
        """What is passed as `**settings` and was not written out."""
        calls = [c for c in (self.call, self.bound) if c is not None]
        return [
            viewed(self.symbols, self.view, k.value, self.symbols.scope(c))
            for c in calls
            for k in c.keywords
            if k.arg is None
        ]

    def unknown_rest(self) -> bool:
        """Arguments may come from elsewhere."""
        for call in (self.call, self.bound):
            if call is not None and any(isinstance(a, ast.Starred) for a in call.args):
                return True
        for rest in self.rest():
            for ref in self._tables(rest):
                made = isinstance(ref.expr, ast.Call) and self._spelt_out(ref.expr, ref.scope)
                callers = self.symbols.configs.callers(ref.expr, ref.scope)
                if callers and not any(k.arg is None for c in callers for k in c.keywords):
                    continue
                if not isinstance(ref.expr, ast.Dict) and not made:
                    return True
                if isinstance(ref.expr, ast.Dict) and ref.expr is rest.expr and None in ref.expr.keys:
                    return True  # a caller that passes on what it got
        return False

    def _tables(self, rest: Ref, depth: int = 4) -> list[Ref]:
        """What may be passed as `**rest`; `super().options()` is what the method of the base class returns."""
        found: list[Ref] = []
        for ref in self.symbols.resolve(*rest):
            above = self.symbols.super_method(ref.expr.func, ref.scope) if isinstance(ref.expr, ast.Call) else None
            values = returns(above) if above is not None and depth else []
            found += [r for v in values if above for r in self._tables(Ref(v, above), depth - 1)] or [ref]
        return found

    def _spelt_out(self, call: ast.Call, scope: Scope) -> bool:
        """`dict(...)`, `asdict(options)` of a class of the file."""
        name = last_name(call.func)
        if name in ("asdict", "vars") and call.args:
            cls = self.symbols.instance_class(call.args[0], scope)
            if cls is None and isinstance(call.args[0], ast.Name):
                default = self.symbols.default(call.args[0].id, scope)
                cls = self.symbols.instance_class(default, scope) if default is not None else None
            return cls is not None
        rest = [Ref(k.value, scope) for k in call.keywords if k.arg is None]  # of a caller that is not shown
        return name in ("dict", "OrderedDict") and all(
            isinstance(r.expr, ast.Dict | ast.Call) for whole in rest for r in self._tables(whole)
        )


def exports(symbols: Symbols) -> Iterator[Export]:
    """Every call of a file that writes an ONNX file."""
    partials: list[ast.Call] = []
    for call in symbols.calls:
        name = symbols.qual(call.func) or ""
        if name in _EXPORTERS:
            yield Export(symbols, call)
        elif name == "functools.partial" and call.args and (symbols.qual(call.args[0]) or "") in _EXPORTERS:
            partials.append(call)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "to_onnx" and call.args:
            yield Export(symbols, call, method=True)
    for made in partials:
        users = [c for c in symbols.calls if _runs(symbols, c, made)]
        for user in users:
            yield Export(symbols, user, bound=made)
        if not users:
            yield Export(symbols, made)


def _runs(symbols: Symbols, call: ast.Call, made: ast.Call) -> bool:
    if isinstance(call.func, ast.Name | ast.Attribute) and symbols.qual(call.func) is None:
        return any(r.expr is made for r in symbols.resolve(call.func, symbols.scope(call)))
    return False

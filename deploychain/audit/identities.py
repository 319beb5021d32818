"""Which names of a file stand for one and the same object."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from deploychain.audit.astnames import Scope, argument_for, dotted, returns, strip_module_calls

if TYPE_CHECKING:
    from deploychain.audit.symbols import Symbols

Key = tuple[int, str]  # where the object has its name, and the name


class Identities:
    """Keys of objects, through aliases, `self`, arguments and functions that return what they are given."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._keys: dict[tuple[int, int, int], Key | None] = {}

    def of(self, expr: ast.expr, scope: Scope, depth: int = 6) -> Key | None:
        """One key for all names of one object; None where an expression is no name of any."""
        at = (id(expr), id(scope), depth)
        if at not in self._keys:
            self.symbols.kept.append(expr)
            self._keys[at] = None  # what is itself on the way has no name of its own
            self._keys[at] = self._of(strip_module_calls(expr), scope, depth)
        return self._keys[at]

    def _of(self, expr: ast.expr, scope: Scope, depth: int) -> Key | None:
        if not depth:
            return None
        if isinstance(expr, ast.Call):
            return self._returned(expr, scope, depth)
        text = dotted(expr)
        if text is None:
            return None
        symbols = self.symbols
        if isinstance(expr, ast.Attribute):
            own = text.startswith("self.")
            cls = symbols.class_of(scope) if own else symbols.instance_class(expr.value, scope)
            return (id(cls), text if own else f"self.{expr.attr}") if cls is not None else (id(symbols.module), text)
        function = symbols.parameter_scope(text, scope)
        if function is not None:
            return self._passed(function, text, depth)
        bindings = symbols.bindings(text, scope)
        made = [b for b in bindings if b.value is not None and dotted(strip_module_calls(b.value)) != text]
        if len(made) == 1 and made[0].value is not None and made[0].place is None and not made[0].loop:
            other = self.of(made[0].value, made[0].scope, depth - 1)
            if other is not None:
                return other
        owner = next((b.scope for b in bindings), None) if not made else None
        if owner is not None and text in owner.parameters:  # `model = model.float()` of a parameter
            return self._passed(owner, text, depth)
        return (id(bindings[0].scope if bindings else symbols.module), text)

    def _returned(self, call: ast.Call, scope: Scope, depth: int) -> Key | None:
        """The argument that a function of the file returns."""
        function = self.symbols.local_function(call.func, scope)
        for value in returns(function) if function is not None else ():
            name = dotted(strip_module_calls(value))
            given = argument_for(call, function, name) if function is not None and name else None
            if given is not None:
                return self.of(given, scope, depth - 1)
        return None

    def _passed(self, function: Scope, name: str, depth: int) -> Key | None:
        """What every call passes for a parameter; the parameter itself where that differs."""
        passed = {
            self.of(given, self.symbols.scope(call), depth - 1)
            for call in self.symbols.call_sites(function)[:8]
            if (given := argument_for(call, function, name)) is not None
        }
        return passed.pop() if len(passed) == 1 else (id(function), name)

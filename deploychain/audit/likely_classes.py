"""The class of this file that a parameter is an instance of, by what is asked of it."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from deploychain.audit.astnames import Scope, argument_for, last_name

if TYPE_CHECKING:
    from deploychain.audit.symbols import Symbols

_LIGHTNING = frozenset({"pl_module", "lightning_module"})  # what callbacks of Lightning are given
_ENOUGH = 3  # different attributes


class LikelyClasses:
    """`amp.ctx, amp.backward(loss), amp.scaler` of a parameter `amp`: only one class of the file has all of these."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols

    def of(self, name: str, scope: Scope) -> Scope | None:
        """Of a parameter without an annotation; None where no class or more than one has all that is used."""
        function = self.symbols.parameter_scope(name, scope) if self.symbols.classes and name != "self" else None
        if function is not None and name in _LIGHTNING:
            return self._lightning
        if function is None or name in function.annotations:
            return None
        given = self._handed_itself(function, name)
        if given is not None:
            return given
        used = self._used.get((id(function), name), set())
        if len(used) < _ENOUGH:
            return None
        found = [cls for cls, members in self._members if used <= members]
        return found[0] if len(found) == 1 else None

    def _handed_itself(self, function: Scope, name: str) -> Scope | None:
        """The class of which an object hands itself to its hooks: `for cb in self.callbacks: cb.on_start(self)`."""
        if function.owner is None:
            return None
        found = set()
        for call in self.symbols.calls_ending(function.name):
            given = argument_for(call, function, name) if isinstance(call.func, ast.Attribute) else None
            if not (isinstance(given, ast.Name) and given.id == "self"):
                return None
            found.add(self.symbols.class_of(self.symbols.scope(call)))
        return found.pop() if len(found) == 1 else None

    @cached_property
    def _lightning(self) -> Scope | None:
        """The one LightningModule of the file."""
        named = {c: [last_name(b) for b in getattr(c.node, "bases", ())] for c in self.symbols.classes.values()}
        found = [c for c in named if any("LightningModule" in named.get(b, ()) for b in self.symbols.bases(c))]
        return found[0] if len(found) == 1 else None

    @cached_property
    def _used(self) -> dict[tuple[int, str], set[str]]:
        used: dict[tuple[int, str], set[str]] = {}
        for node in self.symbols.nodes(ast.Attribute):
            if isinstance(node.value, ast.Name):
                used.setdefault((id(self.symbols.scope(node)), node.value.id), set()).add(node.attr)
        return used

    @cached_property
    def _members(self) -> list[tuple[Scope, set[str]]]:
        own: dict[int, set[str]] = {}
        for name, functions in self.symbols.functions.items():
            for function in functions:
                if function.owner is not None:
                    own.setdefault(id(function.owner), set()).add(name)
        return [
            (cls, own.get(id(cls), set()) | {n.removeprefix("self.") for n in cls.bindings})
            for cls in self.symbols.classes.values()
        ]

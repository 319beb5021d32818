"""Which functions of a file take part in training: only these are followed."""

from __future__ import annotations

import ast
from functools import cached_property

from deploychain.audit.astnames import Scope, last_name
from deploychain.audit.callees import handed, runs
from deploychain.audit.events import EventReader
from deploychain.audit.hooks import HookLists, unordered
from deploychain.audit.symbols import Symbols
from deploychain.audit.tree import walk
from deploychain.audit.values import words

_EVENT_NAMES = words("backward manual_backward step update unscale_ zero_grad scale")


class TrainingFunctions:
    """The functions that hold a training event, or call one that does."""

    def __init__(self, symbols: Symbols, reader: EventReader, lists: HookLists) -> None:
        self.symbols = symbols
        self.lists = lists
        self.reader = reader

    def __contains__(self, function: Scope) -> bool:
        return id(function) in self._ids

    @cached_property
    def scopes(self) -> list[Scope]:
        return [f for f in self.symbols.function_scopes if f in self]

    def any_in(self, root: ast.AST, scope: Scope) -> bool:
        """Something in a loop or comprehension steps, zeroes or runs a function of the file that does."""
        return any(
            isinstance(n, ast.Call)
            and (
                last_name(n.func) in _EVENT_NAMES
                or ((inner := runs(self.symbols, n, scope)) is not None and inner in self)
            )
            for n in walk(root)
        )

    def _given(self, call: ast.Call, scope: Scope) -> list[Scope]:
        """What a call may run that names no function of the file: hooks, functions that somebody handed over."""
        return [*unordered(self.symbols, call, scope), *handed(self.symbols, call.func, scope)]

    @cached_property
    def _ids(self) -> set[int]:
        symbols = self.symbols
        found: set[int] = set()
        callers: dict[int, set[int]] = {}
        for call in symbols.calls:
            scope = symbols.scope(call)
            if self.reader.of_call(call, scope, {}) or self.reader.is_grad_argument(call, scope):
                found.add(id(scope))
            inner = runs(symbols, call, scope)
            for function in [inner] if inner is not None else self._given(call, scope):
                callers.setdefault(id(function), set()).add(id(scope))
        for loop in symbols.nodes(ast.For):
            scope = symbols.scope(loop)
            members = self.lists.possible(loop, scope)
            for call in (n for s in loop.body for n in walk(s) if members and isinstance(n, ast.Call)):
                for member in members:
                    for function in self.lists.run_by(call, self.lists.variable(loop), member, None):
                        callers.setdefault(id(function), set()).add(id(scope))
        for kind in (ast.Assign, ast.AugAssign, ast.Delete):
            for statement in symbols.nodes(kind):
                scope = symbols.scope(statement)
                if self.reader.of_assignment(statement, scope):
                    found.add(id(scope))
        queue = list(found)
        while queue:
            for caller in callers.get(queue.pop(), ()):
                if caller not in found:
                    found.add(caller)
                    queue.append(caller)
        return found

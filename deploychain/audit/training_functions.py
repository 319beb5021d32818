"""Which functions of a file take part in training: only these are followed."""

from __future__ import annotations

import ast
from functools import cached_property

from deploychain.audit.astnames import Scope
from deploychain.audit.callees import hooks, runs
from deploychain.audit.events import EventReader
from deploychain.audit.symbols import Symbols


class TrainingFunctions:
    """The functions that hold a training event, or call one that does."""

    def __init__(self, symbols: Symbols, reader: EventReader) -> None:
        self.symbols = symbols
        self.reader = reader

    def __contains__(self, function: Scope) -> bool:
        return id(function) in self._ids

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
            for function in [inner] if inner is not None else hooks(symbols, call, scope):
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

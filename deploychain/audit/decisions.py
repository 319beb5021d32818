"""Conditions that the file answers by its own words: a constant, a default, a setting that a configuration has."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from deploychain.audit.astnames import Scope, dotted, last_name, returns
from deploychain.audit.tree import children, walk

if TYPE_CHECKING:
    from deploychain.audit.symbols import Symbols

_WORDS = (ast.Constant, ast.List, ast.Tuple, ast.Set)
_FLOAT32 = frozenset({"float32", "float", "float64", "nullcontext", "suppress", "Identity"})


class Decisions:
    """Which way a run without further arguments takes."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._live: dict[int, list[ast.expr]] = {}

    def holds(self, test: ast.expr, scope: Scope) -> bool | None:
        """True or False where words and numbers decide, or a switch that is given and not only left as it is."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.holds(test.operand, scope)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            deciding = isinstance(test.op, ast.Or)
            known = True
            for value in test.values:
                answer = self.holds(value, scope)
                if answer is deciding:
                    return deciding
                known = known and answer is not None
            return not deciding if known else None
        if isinstance(test, ast.Compare):
            return self._compared(test, scope)
        value = self.symbols.const(test, scope)
        if isinstance(value, bool):
            return value
        compared = self._named(test, scope) if isinstance(test, ast.Name | ast.Attribute) else None
        return self._compared(*compared) if compared is not None else None

    def _named(self, test: ast.Name | ast.Attribute, scope: Scope) -> tuple[ast.Compare, Scope] | None:
        """The comparison that a name stands for: `half = cfg.precision == "fp16"`, also a property."""
        bindings = self.symbols.bindings(dotted(test) or "", scope)
        if len(bindings) == 1:
            found = [(bindings[0].value, bindings[0].scope)]
        elif isinstance(test, ast.Attribute) and not bindings and test.attr in self.symbols.functions:
            found = [*self.symbols.resolve(test, scope)]
        else:
            return None
        value, home = found[0]
        return (value, home) if len(found) == 1 and isinstance(value, ast.Compare) else None

    def _compared(self, test: ast.Compare, scope: Scope) -> bool | None:
        op = test.ops[0]
        if len(test.ops) > 1 or not isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn):
            return None
        if not any(isinstance(e, _WORDS) for e in (test.left, test.comparators[0])):
            return None
        left = self.symbols.const(test.left, scope)
        right = self.symbols.const(test.comparators[0], scope) if isinstance(left, str) else None
        if isinstance(op, ast.In | ast.NotIn) and isinstance(left, str) and isinstance(right, list | str):
            known = isinstance(right, str) or all(isinstance(r, str) for r in right)
            return (left in right) == isinstance(op, ast.In) if known else None
        if isinstance(op, ast.Eq | ast.NotEq) and isinstance(left, str) and isinstance(right, str):
            return (left == right) == isinstance(op, ast.Eq)
        return None

    def arm(self, choice: ast.IfExp, scope: Scope) -> ast.expr | None:
        """The value that `a if kind == "x" else b` has; None where that is open, or turns something off.

        That an option is off by default says nothing about the code for those who turn it on.
        """
        answer = self.holds(choice.test, scope)
        if answer is None:
            return None
        arm = choice.body if answer else choice.orelse
        return None if _off(arm) else arm

    def live_returns(self, function: Scope) -> list[ast.expr]:
        """The values that a function returns, without those behind conditions that are decided otherwise."""
        every = returns(function)
        if len(every) < 2:
            return every
        if id(function) not in self._live:
            self._live[id(function)] = every  # while it is being found
            if not any(_asks_for_words(s) for s in walk(function.node)):
                return every
            found: list[ast.expr] = []
            self._body(function.body, function, found)
            self._live[id(function)] = found if found and not all(map(_off, found)) else every
        return self._live[id(function)]

    def _body(self, body: list[ast.stmt], scope: Scope, found: list[ast.expr]) -> bool:
        """Collects what these statements return; whether they surely end the function."""
        for s in body:
            if isinstance(s, ast.Return):
                found += [s.value] if s.value is not None else []
                return True
            if isinstance(s, ast.Raise):
                return True
            if isinstance(s, ast.If):
                answer = self.holds(s.test, scope)
                ends = [
                    self._body(side, scope, found)
                    for side, goes in ((s.body, answer is not False), (s.orelse, answer is not True))
                    if goes
                ]
                if all(ends):
                    return True
            elif isinstance(s, ast.Match):
                if self._match(s, scope, found):
                    return True
            elif not isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = [c for c in children(s) if isinstance(c, ast.stmt | ast.ExceptHandler)]
                self._body(
                    [x for c in inner for x in (c.body if isinstance(c, ast.ExceptHandler) else [c])], scope, found
                )
        return False

    def _match(self, s: ast.Match, scope: Scope, found: list[ast.expr]) -> bool:
        subject = self.symbols.const(s.subject, scope)
        ends = []
        for case in s.cases:
            answer = _matches(case.pattern, subject) if case.guard is None else None
            if answer is False:
                continue
            ends.append(self._body(case.body, scope, found))
            if answer is True:
                return all(ends)
        return False


def _asks_for_words(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return any(isinstance(e, _WORDS) for e in (node.left, *node.comparators))
    return isinstance(node, ast.Match) or (isinstance(node, ast.If) and isinstance(node.test, ast.Attribute))


def _matches(pattern: ast.pattern, subject: object) -> bool | None:
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
        return True
    if isinstance(pattern, ast.MatchOr):
        answers = [_matches(p, subject) for p in pattern.patterns]
        return True if True in answers else None if None in answers else False
    if isinstance(pattern, ast.MatchValue) and isinstance(pattern.value, ast.Constant) and isinstance(subject, str):
        return pattern.value.value == subject
    return None


def _off(arm: ast.expr) -> bool:
    """None, False, a full-precision dtype or a context that does nothing."""
    if isinstance(arm, ast.Constant):
        return arm.value is None or arm.value is False or arm.value == "float32"
    called = arm.func if isinstance(arm, ast.Call) else arm
    return dotted(called) is not None and last_name(called) in _FLOAT32

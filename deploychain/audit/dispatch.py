"""Which function a call runs, given what is known of `self` and of the variable of a loop over hooks."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from deploychain.audit.astnames import Scope, argument_for
from deploychain.audit.callees import function_named, handed, runs
from deploychain.audit.hooks import HookLists, unordered
from deploychain.audit.inheritance import method_of
from deploychain.audit.symbols import Symbols
from deploychain.audit.training_functions import TrainingFunctions
from deploychain.audit.tree import walk

_MOST_VARIANTS = 8


@dataclass(frozen=True)
class Frame:
    """What is known inside one function: the class of `self`, and what loop variables stand for."""

    concrete: Scope | None = None
    pins: Mapping[str, Scope] = field(default_factory=dict)

    def pinned(self, name: str, member: Scope) -> Frame:
        return Frame(self.concrete, {**self.pins, name: member})


class Dispatch:
    def __init__(self, symbols: Symbols, lists: HookLists, functions: TrainingFunctions) -> None:
        self.symbols = symbols
        self.lists = lists
        self.functions = functions

    def runs(self, call: ast.Call, scope: Scope, frame: Frame, said: Mapping[str, str]) -> Scope | None:
        """The function of this file that a call runs."""
        for name, member in frame.pins.items():
            found = self.lists.run_by(call, name, member, said)
            if found:
                return found[0]
        func = call.func
        if isinstance(func, ast.Attribute) and _is_self(func.value) and frame.concrete is not None:
            other = frame.concrete is not self.symbols.class_of(scope)
            method = method_of(self.symbols, frame.concrete, func.attr) if other else None
            if method is not None:
                return method
        found_here = runs(self.symbols, call, scope)
        given = handed(self.symbols, func, scope) if found_here is None else []
        return given[0] if len(given) == 1 else found_here

    def inside(self, call: ast.Call, inner: Scope, frame: Frame) -> Frame:
        """What is known in the function that a call runs, the functions that it is handed among it."""
        made = self._inside(call, inner, frame)
        scope = self.symbols.scope(call)
        for parameter in inner.parameters:
            argument = argument_for(call, inner, parameter)
            if argument is None:
                continue
            name = argument.id if isinstance(argument, ast.Name) else ""
            function = frame.pins.get(name) or function_named(self.symbols, argument, scope)
            if function is not None and not function.is_class:
                made = made.pinned(parameter, function)
        return made

    def _inside(self, call: ast.Call, inner: Scope, frame: Frame) -> Frame:
        func = call.func
        if inner.owner is None:
            return Frame(frame.concrete) if inner.parent is not None and inner.parent.parent is not None else Frame()
        for name, member in frame.pins.items():
            if member.is_class and self.lists.run_by(call, name, member, None):
                return Frame(member)
        if isinstance(func, ast.Attribute):
            if _is_self(func.value) or self.symbols.super_method(func, self.symbols.scope(call)) is not None:
                return Frame(frame.concrete)
            cls = self.symbols.instance_class(func.value, self.symbols.scope(call))
            return Frame(cls if cls is not None and inner.owner in self.symbols.bases(cls) else None)
        return Frame(inner.owner)

    def is_empty_override(self, function: Scope, frame: Frame) -> bool:
        """A subclass has it in place of a method that takes part in training, and nothing of that is in it."""
        above = list(self.symbols.bases(function.owner))[1:] if function.owner is frame.concrete else []
        return function not in self.functions and _over(self.symbols, function, above, self.functions)

    def rounds(self, loop: ast.stmt, scope: Scope, frame: Frame, said: Mapping[str, str]) -> list[Frame]:
        """The rounds of a loop over hooks: one for each that is known, or one for all; none for other loops."""
        if not isinstance(loop, ast.For) or not (name := self.lists.variable(loop)):
            return []
        members = self.lists.members(loop, scope, said)
        every = [list(self.symbols.bases(m)) if m.is_class else [m] for m in members]
        if any(f in group or f.owner in group for group in every for f in self.functions.scopes):
            return [frame.pinned(name, m) for m in members]
        calls = (n for s in loop.body for n in walk(s) if isinstance(n, ast.Call))
        one = any(f in self.functions for c in calls for f in unordered(self.symbols, c, scope, said))
        return [frame] if one else []


def variants(symbols: Symbols, functions: TrainingFunctions) -> Iterator[tuple[Scope, Scope]]:
    """Methods of a base class, with each subclass that has its own version of something that the method runs."""
    made = 0
    for cls in symbols.classes.values():
        above = list(symbols.bases(cls))[1:]
        own = {f.name: f for f in symbols.function_scopes if f.owner is cls} if above else {}
        inherited = [f for f in functions.scopes if f.owner in above and f.name not in own] if own else []
        for method in inherited:
            entered = [symbols.class_of(symbols.scope(site)) for site in symbols.call_sites(method)]
            if any(c is cls or c in above for c in entered) or method_of(symbols, cls, method.name) is not method:
                continue
            reached = _reached(symbols, cls, method)
            if any(f.owner is cls and (f in functions or _over(symbols, f, above, functions)) for f in reached):
                made += 1
                if made > _MOST_VARIANTS:
                    return
                yield method, cls


def _over(symbols: Symbols, function: Scope, above: list[Scope], functions: TrainingFunctions) -> bool:
    """It takes the place of a method that takes part in training."""
    return any(f in functions for f in symbols.functions.get(function.name, ()) if f.owner in above)


def _reached(symbols: Symbols, cls: Scope, method: Scope) -> list[Scope]:
    """The methods that a method runs on `self`, and those that these run."""
    found: list[Scope] = []
    queue = [method]
    while queue:
        for node in walk(queue.pop().node):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_self(node.func.value):
                inner = method_of(symbols, cls, node.func.attr)
                if inner is not None and inner not in found:
                    found.append(inner)
                    queue.append(inner)
    return found


def _is_self(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Name) and expr.id == "self"

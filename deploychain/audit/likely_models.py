"""The module class of this file that a `model` is which a function is handed and the file never makes.

A file with one network and a training function `fit(model, loader)`: the network is what the function will be given.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import TYPE_CHECKING

from deploychain.audit.astnames import Ref, Scope, last_name, strip_module_calls
from deploychain.audit.tree import walk

if TYPE_CHECKING:
    from deploychain.audit.symbols import Symbols

_NO_NETWORK = re.compile(r"loss|criterion|metric|penalt|optim|augment|transform|wrapper|trainer", re.IGNORECASE)
_ANY_MODULE = frozenset({"Module", "Any", "object", ""})


class LikelyModels:
    """Classes with a `forward` that nothing in the file makes an instance of."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols

    def of(self, expr: ast.expr, scope: Scope, call: ast.Call | None = None) -> Scope | None:
        """The class of a model that comes from outside; None where several would do, or one that takes other input."""
        if not self._candidates or not all(self._from_outside(r) for r in self.symbols.resolve(expr, scope)):
            return None
        own = self.symbols.class_of(scope)
        inside = set(map(id, self.symbols.bases(own)))
        found = [(c, f) for c, f in self._candidates if id(c) not in inside and (call is None or _takes(f, call))]
        if len(found) > 1:
            leaf = last_name(expr).lower().replace("_", "")
            found = [(c, f) for c, f in found if leaf in c.name.lower() or c.name.lower() in leaf]
        return found[0][0] if len(found) == 1 else None

    def _from_outside(self, ref: Ref) -> bool:
        """A parameter of a function, or a whole module out of a file."""
        made = strip_module_calls(ref.expr)
        if isinstance(made, ast.Call):
            return self.symbols.qual(made.func, ref.scope) == "torch.load"
        if not isinstance(made, ast.Name) or made.id in ("self", "cls"):
            return False
        bound = self.symbols.bindings(made.id, ref.scope)  # `net = net.eval().half()` leaves it the parameter
        function = (
            self.symbols.same_object(made.id, bound) if bound else self.symbols.parameter_scope(made.id, ref.scope)
        )
        if function is None:
            return False
        annotation = function.annotations.get(made.id)
        return annotation is None or last_name(annotation) in _ANY_MODULE

    @cached_property
    def _candidates(self) -> list[tuple[Scope, Scope]]:
        """(class, its forward)"""
        found = []
        for cls in self.symbols.classes.values():
            forward = self._forward(cls)
            if forward is not None and _NO_NETWORK.search(cls.name) is None and self._is_module(cls):
                found.append((cls, forward))
        if not found:
            return []
        used = {n.id for n in self.symbols.nodes(ast.Name)} & {c.name for c, _ in found}
        if used:  # an annotation and `super(Net, self)` make no instance
            told = {id(n) for e in self._annotations for n in walk(e)}
            told |= {id(a) for c in self.symbols.calls if last_name(c.func) in ("super", "isinstance") for a in c.args}
            used = {n.id for n in self.symbols.nodes(ast.Name) if n.id in used and id(n) not in told}
        return [(c, f) for c, f in found if c.name not in used]

    @property
    def _annotations(self) -> list[ast.expr]:
        functions = self.symbols.function_scopes
        return [e for f in functions for e in [*f.annotations.values(), getattr(f.node, "returns", None)] if e]

    def _forward(self, cls: Scope) -> Scope | None:
        for base in self.symbols.bases(cls):
            for function in self.symbols.functions.get("forward", ()):
                if function.owner is base:
                    return function
        return None

    def _is_module(self, cls: Scope) -> bool:
        for base in self.symbols.bases(cls):
            if getattr(base.node, "decorator_list", None):
                return False  # registered somewhere, and made from there
            for expr in getattr(base.node, "bases", []):
                if last_name(expr) == "Module":
                    return True
        return False


def _takes(forward: Scope, call: ast.Call) -> bool:
    """The call gives the forward what it needs, and no more."""
    node = forward.node
    if not isinstance(node, ast.FunctionDef) or any(isinstance(a, ast.Starred) for a in call.args):
        return isinstance(node, ast.FunctionDef)
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)][1:]
    needed = len(names) - len(arguments.defaults)
    given = len(call.args) + len(call.keywords)
    if any(k.arg is None for k in call.keywords):
        return len(call.args) <= len(names)
    most = len(names) + len(arguments.kwonlyargs)
    known = {*names, *(a.arg for a in arguments.kwonlyargs)}
    if arguments.vararg is None and (given > most or len(call.args) > len(names)):
        return False
    return given >= needed and (arguments.kwarg is not None or all(k.arg in known for k in call.keywords))

"""What a base class of this file leaves to its subclasses, and which of their methods run in place of its own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from deploychain.audit.astnames import Scope, last_name

if TYPE_CHECKING:
    from deploychain.audit.index import Index


def overrides(index: Index, function: Scope) -> list[Scope]:
    """The methods of subclasses in this file that a call in the base class may run instead."""
    named = index.functions.get(function.name, ()) if function.owner is not None else ()
    return [s for s in named if s is not function and any(base is function.owner for base in index.bases(s.owner))]


def run_by_self(index: Index, function: Scope) -> list[Scope]:
    """The methods that `self.name()` in a base class may run: its own, where it can run at all, and the overrides.

    A base class that the file only derives from, next to subclasses that it uses, runs as these.
    """
    others = overrides(index, function)
    if not others or function.owner is None:
        return [function]
    known = [s for s in (function, *others) if s.owner is not None and s.owner.name in index.used_classes]
    heirs = [c for c in index.classes.values() if c.name in index.used_classes and function.owner in index.bases(c)]
    if any(method_of(index, c, function.name) is function for c in heirs):
        return [function, *others[:4]]
    return known or (others[:4] if is_abstract(function.owner) else [function, *others[:4]])


def bodies(index: Index, function: Scope) -> list[Scope]:
    """The functions that one name may run: `if scaler is None: def scale(x): ... else: def scale(x): ...`."""
    same = [f for f in index.functions.get(function.name, ()) if f.parent is function.parent and f.owner is None]
    if len(same) < 2 or all(index.parent.get(f.node) is getattr(f.parent, "node", None) for f in same):
        return [function]  # one after the other: the last one
    return same[-4:]


def method_of(index: Index, cls: Scope | None, name: str) -> Scope | None:
    """The method that an instance of the class runs under this name."""
    found = index.functions.get(name, ())
    return next((f for base in index.bases(cls) for f in found if f.owner is base), None) if found else None


def is_abstract(cls: Scope | None) -> bool:
    """A class that cannot run by itself: one of its methods only raises, or is an `abstractmethod`."""
    return cls is not None and any(
        isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
        and (
            any(last_name(d) == "abstractmethod" for d in method.decorator_list)
            or (isinstance(method.body[-1], ast.Raise) and all(map(_says_nothing, method.body[:-1])))
        )
        for method in cls.body
    )


def left_open(function: Scope) -> bool:
    """`raise NotImplementedError`, `pass` or only a docstring."""
    return all(isinstance(s, ast.Raise) or _says_nothing(s) for s in function.body)


def _says_nothing(s: ast.stmt) -> bool:
    """`pass`, `...` or a docstring."""
    return isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))

"""The index of one file: its scopes, what each name is bound to, and what was imported as what."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import Any, cast

from deploychain.audit.astnames import Binding, Scope, dotted, is_body, last_name
from deploychain.audit.sources import Source
from deploychain.audit.tree import children, walk

_SCOPES = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef})
_BINDING = frozenset({ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.AsyncFor, ast.comprehension, ast.withitem})
_STAR = {
    "torch.cuda.amp": ("autocast", "GradScaler", "custom_fwd", "custom_bwd"),
    "torch.amp": ("autocast", "GradScaler", "custom_fwd", "custom_bwd"),
    "torch.nn": (
        "Module",
        "Linear",
        "Conv2d",
        "BatchNorm2d",
        "BCELoss",
        "CrossEntropyLoss",
        "Sequential",
        "functional",
    ),
}


class Index:
    """Names of one file as they are written: nothing is followed from one name to the next (`Symbols` does that)."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.imports: dict[str, list[str]] = {}
        self.scope_of: dict[ast.AST, Scope] = {}  # of every statement-owning node and every call
        self.parent: dict[ast.AST, ast.AST] = {}
        self.calls: list[ast.Call] = []
        self._nodes: dict[type[ast.AST], list[ast.AST]] = {}
        self.functions: dict[str, list[Scope]] = {}
        self.classes: dict[str, Scope] = {}
        self.function_scopes: list[Scope] = []
        self._heirs: dict[int, Scope] = {}
        self._call_sites: dict[str, list[ast.Call]] = {}
        self.module = Scope(source.tree, None)
        self._index(source.tree, self.module)

    # -- building -----------------------------------------------------------------------------------------------

    def _index(self, root: ast.AST, root_scope: Scope) -> None:
        # Iterative: generated code nests deeper than the recursion limit.
        stack: list[tuple[ast.AST, Scope]] = [(root, root_scope)]
        scope_of, parent, kinds = self.scope_of, self.parent, self._nodes
        while stack:
            node, scope = stack.pop()
            scope_of[node] = scope
            kind = type(node)
            kinds.setdefault(kind, []).append(node)
            if kind is ast.Name or kind is ast.Constant:
                continue
            inside = scope
            if kind in _SCOPES:
                inside = Scope(node, scope, owner=scope if scope.is_class else None)
                self._declare(node, scope, inside)
            elif kind is ast.Call:
                name = last_name(node.func)  # type: ignore[attr-defined]
                if name:
                    self._call_sites.setdefault(name, []).append(node)  # type: ignore[arg-type]
            elif kind is ast.Import or kind is ast.ImportFrom:
                self._import(node)  # type: ignore[arg-type]
            elif kind in _BINDING:
                self._bind(node, scope)
            for child in children(node):
                parent[child] = node
                # Decorators, defaults, annotations and bases are evaluated outside.
                stack.append((child, inside if inside is scope or is_body(node, child) else scope))
        self.calls = cast("list[ast.Call]", kinds.get(ast.Call, []))
        self.calls.sort(key=lambda c: (c.lineno, c.col_offset))

    def add_call_site(self, call: ast.Call) -> None:
        self._call_sites.setdefault(last_name(call.func), []).append(call)

    def _declare(self, node: Any, scope: Scope, made: Scope) -> None:
        if isinstance(node, ast.ClassDef):
            self.classes.setdefault(node.name, made)
            return
        arguments = node.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        made.parameters = [a.arg for a in every]
        made.annotations = {a.arg: a.annotation for a in every if a.annotation is not None}
        if isinstance(node, ast.Lambda):
            return
        self.functions.setdefault(node.name, []).append(made)
        self.function_scopes.append(made)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    self.imports.setdefault(alias.asname, []).append(alias.name)
                else:
                    first = alias.name.split(".")[0]
                    self.imports.setdefault(first, []).append(first)
            return
        base = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                for name in _STAR.get(base, ()):
                    self.imports.setdefault(name, []).append(f"{base}.{name}")
            else:
                self.imports.setdefault(alias.asname or alias.name, []).append(f"{base}.{alias.name}")

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind_target(target, node.value, scope, node)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            self._bind_target(node.target, node.value, scope, node)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            self._bind_target(node.target, node.iter, scope, node, loop=True)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._bind_target(node.optional_vars, node.context_expr, scope, node)

    def _bind_target(
        self,
        target: ast.expr,
        value: ast.expr,
        scope: Scope,
        node: ast.AST,
        *,
        index: int | None = None,
        loop: bool = False,
    ) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for i, element in enumerate(target.elts):
                if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) and not loop:
                    self._bind_target(element, value.elts[i], scope, node)
                else:
                    self._bind_target(element, value, scope, node, index=i, loop=loop)
            return
        text = dotted(target)
        if text is None:
            return
        home = scope
        if text.startswith("self.") and (owner := self._class_of(scope)) is not None:
            home = owner
        home.bindings.setdefault(text, []).append(Binding(value, scope, node, index, loop))

    # -- asking -------------------------------------------------------------------------------------------------

    def nodes(self, *kinds: type[ast.AST]) -> list[Any]:
        """Every node of these kinds in the file."""
        return [node for kind in kinds for node in self._nodes.get(kind, ())]

    def scope(self, node: ast.AST) -> Scope:
        return self.scope_of.get(node, self.module)

    def _class_of(self, scope: Scope | None) -> Scope | None:
        while scope is not None:
            if scope.owner is not None:
                return scope.owner
            scope = scope.parent
        return None

    def class_of(self, scope: Scope) -> Scope | None:
        """The class whose method encloses this scope."""
        return self._class_of(scope)

    @cached_property
    def used_classes(self) -> frozenset[str]:
        """Names of the classes of this file that are used in it, other than to derive from them."""
        derived = {id(n) for cls in self.classes.values() for b in cls.node.bases for n in walk(b)}  # type: ignore[attr-defined]
        return frozenset(n.id for n in self.nodes(ast.Name) if n.id in self.classes and id(n) not in derived)

    def runs_as(self, cls: Scope | None) -> Scope | None:
        """The class that `self` is in the methods of a class: its one heir in use, where the file uses no other."""
        if cls is None or cls.name in self.used_classes:
            return cls
        if id(cls) not in self._heirs:
            used = [c for c in self.classes.values() if c.name in self.used_classes and cls in self.bases(c)]
            self._heirs[id(cls)] = used[0] if len(used) == 1 else cls
        return self._heirs[id(cls)]

    def super_method(self, func: ast.expr, scope: Scope) -> Scope | None:
        """The method of a base class in this file that `super().name` is."""
        if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Call):
            return None
        if last_name(func.value.func) != "super":
            return None
        above = list(self.bases(self._class_of(scope)))[1:]
        return next((f for cls in above for f in self.functions.get(func.attr, ()) if f.owner is cls), None)

    def bindings(self, text: str, scope: Scope) -> list[Binding]:
        """Every binding of a dotted name that this scope can see, innermost scope that has any."""
        if text.startswith("self."):
            found: list[Binding] = []
            of_body: list[Binding] = []
            for cls in self.bases(self.runs_as(self._class_of(scope))):
                found += cls.bindings.get(text, [])
                of_body = of_body or cls.bindings.get(text.removeprefix("self."), [])
            return [*found, *of_body]
        current: Scope | None = scope
        while current is not None:
            if not current.is_class or current is scope:
                if text in current.bindings:
                    return current.bindings[text]
                if text in current.parameters:
                    return []
            current = current.parent
        return []

    def bases(self, cls: Scope | None) -> Iterator[Scope]:
        seen: set[int] = set()
        queue = [cls] if cls is not None else []
        while queue:
            current = queue.pop(0)
            if id(current) in seen:
                continue
            seen.add(id(current))
            yield current
            for base in getattr(current.node, "bases", []):
                name = last_name(base)
                if name in self.classes:
                    queue.append(self.classes[name])

    def parameter_scope(self, name: str, scope: Scope) -> Scope | None:
        """The function whose parameter this name is, unless it is rebound before."""
        current: Scope | None = scope
        while current is not None:
            if name in current.bindings:
                return None
            if name in current.parameters:
                return current
            current = current.parent
        return None

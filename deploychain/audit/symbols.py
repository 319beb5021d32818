"""Names of one file: what they were imported as, where they are bound, what they may stand for.

Everything is an over-approximation without control flow: `resolve` gives the expressions that a name *may* have been
bound to. Rules that need order use `flow` (paths) or `dtypes` (values in statement order).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, cast

from deploychain.audit.astnames import (
    UNKNOWN,
    Binding,
    Ref,
    Scope,
    argument_for,
    arithmetic,
    canonical,
    dotted,
    is_body,
    last_name,
    returns,
    strip_module_calls,
)
from deploychain.audit.sources import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef})
_BINDING = frozenset({ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.AsyncFor, ast.comprehension, ast.withitem})
# Operators and contexts: shared objects without a place of their own.
_NO_SCOPE = frozenset(
    kind
    for base in (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
    for kind in base.__subclasses__()
)


class Symbols:
    """The index of one file."""

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
        self._call_sites: dict[str, list[ast.Call]] = {}
        self.module = Scope(source.tree, None)
        self._index(source.tree, self.module)
        self._qual_cache: dict[tuple[int, int], str | None] = {}
        self._class_cache: dict[tuple[int, int], Scope | None] = {}
        self._call_site_cache: dict[int, list[ast.Call]] = {}
        self._resolve_cache: dict[tuple[int, int], list[Ref]] = {}
        self._depth = 0

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
            for name in node._fields:
                value = getattr(node, name, None)
                for child in value if type(value) is list else (value,):
                    if isinstance(child, ast.AST) and type(child) not in _NO_SCOPE:
                        parent[child] = node
                        # Decorators, defaults, annotations and bases are evaluated outside.
                        stack.append((child, inside if inside is scope or is_body(node, child) else scope))
        self.calls = cast("list[ast.Call]", kinds.get(ast.Call, []))
        self.calls.sort(key=lambda c: (c.lineno, c.col_offset))

    def _declare(self, node: Any, scope: Scope, made: Scope) -> None:
        if isinstance(node, ast.ClassDef):
            self.classes.setdefault(node.name, made)
            return
        arguments = node.args
        made.parameters = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
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

    def bindings(self, text: str, scope: Scope) -> list[Binding]:
        """Every binding of a dotted name that this scope can see, innermost scope that has any."""
        if text.startswith("self."):
            found: list[Binding] = []
            for cls in self._bases(self._class_of(scope)):
                found += cls.bindings.get(text, [])
            return found
        current: Scope | None = scope
        while current is not None:
            if not current.is_class or current is scope:
                if text in current.bindings:
                    return current.bindings[text]
                if text in current.parameters:
                    return []
            current = current.parent
        return []

    def _bases(self, cls: Scope | None) -> Iterator[Scope]:
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

    def qual(self, expr: ast.AST, scope: Scope | None = None, depth: int = 0) -> str | None:
        """The canonical dotted name of a function, class or module expression: "torch.autocast"; None if not known."""
        scope = scope or self.scope(expr)
        key = (id(expr), id(scope))
        if key not in self._qual_cache:
            self._qual_cache[key] = self._qual(expr, scope, depth)
        return self._qual_cache[key]

    def _qual(self, expr: ast.AST, scope: Scope, depth: int) -> str | None:
        if isinstance(expr, ast.Name):
            for dotted_name in self.imports.get(expr.id, ()):
                return canonical(dotted_name)
            if depth < 4:
                for binding in self.bindings(expr.id, scope):
                    if (
                        binding.loop
                        or binding.place is not None
                        or not isinstance(binding.value, ast.Name | ast.Attribute)
                    ):
                        continue
                    found = self.qual(binding.value, binding.scope, depth + 1)
                    if found:
                        return found
            return None
        if isinstance(expr, ast.Attribute):
            base = self.qual(expr.value, scope, depth)
            return canonical(f"{base}.{expr.attr}") if base else None
        return None

    def local_function(self, func: ast.expr, scope: Scope) -> Scope | None:
        """The function of this file that a call expression runs, where that is clear."""
        if isinstance(func, ast.Name):
            found = [s for s in self.functions.get(func.id, ()) if s.owner is None]
            return found[-1] if found else None
        if not isinstance(func, ast.Attribute):
            return None
        candidates = [s for s in self.functions.get(func.attr, ()) if s.owner is not None]
        if not candidates:
            return None
        if isinstance(func.value, ast.Name) and func.value.id in ("self", "cls"):
            for cls in self._bases(self._class_of(scope)):
                for candidate in candidates:
                    if candidate.owner is cls:
                        return candidate
            return None
        if isinstance(func.value, ast.Call) and last_name(func.value.func) == "super":
            return None
        cls_scope = self.instance_class(func.value, scope)
        if cls_scope is not None:
            for cls in self._bases(cls_scope):
                for candidate in candidates:
                    if candidate.owner is cls:
                        return candidate
        return None

    def instance_class(self, expr: ast.expr, scope: Scope) -> Scope | None:
        """The class of this file that an expression is an instance of, where that is clear."""
        key = (id(expr), id(scope))
        if key not in self._class_cache:
            self._class_cache[key] = None  # what depends on itself is not clear
            self._class_cache[key] = self._instance_class(expr, scope)
        return self._class_cache[key]

    def _instance_class(self, expr: ast.expr, scope: Scope) -> Scope | None:
        for ref in self.resolve(expr, scope):
            call = strip_module_calls(ref.expr)
            if isinstance(call, ast.Call):
                name = last_name(call.func)
                if name in self.classes and self.qual(call.func, ref.scope) is None:
                    return self.classes[name]
        return None

    def call_sites(self, function: Scope) -> list[ast.Call]:
        """Calls in this file that run the function."""
        key = id(function)
        if key not in self._call_site_cache:
            self._call_site_cache[key] = []  # while it is being found
            self._call_site_cache[key] = self._find_call_sites(function)
        return self._call_site_cache[key]

    def _find_call_sites(self, function: Scope) -> list[ast.Call]:
        name = function.name
        sites = []
        for call in self._call_sites.get(name, ()):
            if function.owner is None:
                if isinstance(call.func, ast.Name) and self.local_function(call.func, self.scope(call)) is function:
                    sites.append(call)
            elif isinstance(call.func, ast.Attribute) and self.local_function(call.func, self.scope(call)) is function:
                sites.append(call)
        return sites

    def resolve(self, expr: ast.expr, scope: Scope, depth: int = 6, seen: frozenset[int] = frozenset()) -> list[Ref]:
        """What an expression may stand for: calls, constants, unresolved names. Never empty."""
        if depth <= 0 or id(expr) in seen or self._depth > 40:
            return [Ref(expr, scope)]
        key = (id(expr), id(scope))
        if not seen and key in self._resolve_cache:
            return self._resolve_cache[key]
        self._depth += 1
        try:
            found = self._resolve(expr, scope, depth, seen)
        finally:
            self._depth -= 1
        if not seen and self._depth == 0:
            self._resolve_cache[key] = found
        return found

    def _resolve(self, expr: ast.expr, scope: Scope, depth: int, seen: frozenset[int]) -> list[Ref]:
        seen = seen | {id(expr)}
        if isinstance(expr, ast.IfExp):
            return self._all((expr.body, expr.orelse), scope, depth, seen)
        if isinstance(expr, ast.BoolOp):
            return self._all(tuple(expr.values), scope, depth, seen)
        if isinstance(expr, ast.NamedExpr | ast.Await):
            return self.resolve(expr.value, scope, depth, seen)
        text = dotted(expr)
        if text is not None:
            found = self._resolve_name(expr, text, scope, depth, seen)
            if not found and isinstance(expr, ast.Subscript):
                found = self._resolve_item(expr, scope, depth, seen)
            return found or [Ref(expr, scope)]
        if isinstance(expr, ast.Call):
            returned = self._resolve_call(expr, scope, depth, seen)
            return returned or [Ref(expr, scope)]
        return [Ref(expr, scope)]

    def _all(self, values: tuple[ast.expr, ...], scope: Scope, depth: int, seen: frozenset[int]) -> list[Ref]:
        found: list[Ref] = []
        for value in values:
            found += self.resolve(value, scope, depth - 1, seen)
        return found

    def _resolve_name(self, expr: ast.expr, text: str, scope: Scope, depth: int, seen: frozenset[int]) -> list[Ref]:
        found: list[Ref] = []
        bindings = self.bindings(text, scope)
        for binding in bindings:
            if binding.value is None or binding.loop:
                continue
            if binding.place is not None:
                found += self._resolve_element(binding, depth, seen)
            else:
                found += self.resolve(binding.value, binding.scope, depth - 1, seen)
        if not bindings and isinstance(expr, ast.Name):
            function = self.parameter_scope(text, scope)
            if function is not None:
                found += self._resolve_parameter(function, text, depth, seen)
        if not bindings and isinstance(expr, ast.Attribute) and not text.startswith("self."):
            cls = self.instance_class(expr.value, scope) if depth > 2 else None
            for home in self._bases(cls):
                for binding in home.bindings.get(f"self.{expr.attr}", []):
                    if binding.value is not None and not binding.loop and binding.place is None:
                        found += self.resolve(binding.value, binding.scope, depth - 1, seen)
        return found

    def _resolve_item(self, expr: ast.Subscript, scope: Scope, depth: int, seen: frozenset[int]) -> list[Ref]:
        """`LOSSES["bce"]` of a dict, or of an nn.ModuleDict made from one."""
        found: list[Ref] = []
        wanted = expr.slice.value if isinstance(expr.slice, ast.Constant) else None
        for ref in self.resolve(expr.value, scope, depth - 1, seen):
            table = ref.expr
            if isinstance(table, ast.Call) and last_name(table.func) == "ModuleDict" and table.args:
                table = table.args[0]
            if isinstance(table, ast.Dict):
                for key, value in zip(table.keys, table.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == wanted:
                        found += self.resolve(value, ref.scope, depth - 1, seen)
        return found

    def _resolve_element(self, binding: Binding, depth: int, seen: frozenset[int]) -> list[Ref]:
        found: list[Ref] = []
        assert binding.value is not None
        for ref in self.resolve(binding.value, binding.scope, depth - 1, seen):
            if (
                isinstance(ref.expr, ast.Tuple | ast.List)
                and binding.place is not None
                and binding.place < len(ref.expr.elts)
            ):
                found += self.resolve(ref.expr.elts[binding.place], ref.scope, depth - 1, seen)
        return found

    def _resolve_parameter(self, function: Scope, name: str, depth: int, seen: frozenset[int]) -> list[Ref]:
        found: list[Ref] = []
        if not isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return found
        for call in self.call_sites(function)[:8]:
            argument = argument_for(call, function, name)
            if argument is not None:
                found += self.resolve(argument, self.scope(call), depth - 1, seen)
        if function.name == "__init__" and function.owner is not None:
            for call in self._call_sites.get(function.owner.name, ())[:8]:
                argument = argument_for(call, function, name)
                if argument is not None:
                    found += self.resolve(argument, self.scope(call), depth - 1, seen)
        return found

    def _resolve_call(self, call: ast.Call, scope: Scope, depth: int, seen: frozenset[int]) -> list[Ref]:
        function = self.local_function(call.func, scope)
        if function is None or function.name in ("forward", "__init__"):
            return []
        found: list[Ref] = []
        for value in returns(function):
            found += self.resolve(value, function, depth - 1, seen)
        return found

    def const(self, expr: ast.expr | None, scope: Scope, depth: int = 4) -> Any:
        """The Python value of a literal expression (numbers, strings, containers, names bound once to those)."""
        if expr is None or depth <= 0:
            return UNKNOWN
        if isinstance(expr, ast.Constant):
            return expr.value
        if isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.USub | ast.UAdd | ast.Not):
            value = self.const(expr.operand, scope, depth)
            if value is UNKNOWN:
                return UNKNOWN
            if isinstance(expr.op, ast.Not):
                return not value
            if isinstance(value, int | float):
                return -value if isinstance(expr.op, ast.USub) else value
            return UNKNOWN
        if isinstance(expr, ast.BinOp):
            return arithmetic(expr.op, self.const(expr.left, scope, depth), self.const(expr.right, scope, depth))
        if isinstance(expr, ast.List | ast.Tuple | ast.Set):
            return [self.const(e, scope, depth) for e in expr.elts]
        if (
            isinstance(expr, ast.Call)
            and isinstance(expr.func, ast.Name)
            and expr.func.id in ("float", "int")
            and expr.args
        ):
            value = self.const(expr.args[0], scope, depth)
            try:
                return float(value) if expr.func.id == "float" else int(value)
            except (TypeError, ValueError, OverflowError):
                return UNKNOWN
        text = dotted(expr)
        if text is not None:
            bindings = self.bindings(text, scope)
            if len(bindings) == 1 and bindings[0].place is None and not bindings[0].loop:
                return self.const(bindings[0].value, bindings[0].scope, depth - 1)
            if not bindings and isinstance(expr, ast.Name):
                function = self.parameter_scope(text, scope)
                if function is not None:
                    return self._default(function, text, depth)
        return UNKNOWN

    def _default(self, function: Scope, name: str, depth: int) -> Any:
        """A parameter's default, but only where no call in the file says otherwise."""
        if not isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return UNKNOWN
        arguments = function.node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        values: dict[str, ast.expr | None] = dict(
            zip(
                [a.arg for a in positional[len(positional) - len(arguments.defaults) :]],
                arguments.defaults,
                strict=True,
            )
        )
        values.update({a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)})
        sites = self.call_sites(function)
        if function.name == "__init__" and function.owner is not None:
            sites = self._call_sites.get(function.owner.name, [])
        given = [argument_for(call, function, name) for call in sites]
        passed = [g for g in given if g is not None]
        if passed:
            found = [self.const(g, self.scope(g), depth - 1) for g in passed]
            return found[0] if all(f == found[0] for f in found) else UNKNOWN
        return self.const(values.get(name), function, depth - 1)

    def text(self, node: ast.AST) -> str:
        """Source of an expression, on one line, for messages."""
        try:
            text = ast.unparse(node)
        except (RecursionError, ValueError):
            return "..."
        return text if len(text) <= 60 else text[:57] + "..."


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

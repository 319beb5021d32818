"""What the names of one file may stand for: functions, classes, values.

Everything is an over-approximation without control flow: `resolve` gives the expressions that a name *may* have been
bound to. Rules that need order use `flow` (paths) or `dtypes` (values in statement order).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import (
    Binding,
    Ref,
    Scope,
    argument_for,
    canonical,
    constructed,
    dotted,
    last_name,
    returns,
    strip_copy,
    strip_module_calls,
)
from deploychain.audit.configs import Configs, annotation_name
from deploychain.audit.constants import Constants
from deploychain.audit.decisions import Decisions
from deploychain.audit.entries import write_out_entries
from deploychain.audit.identities import Identities
from deploychain.audit.index import Index
from deploychain.audit.inheritance import bodies, left_open, run_by_self
from deploychain.audit.keywords import write_out_keywords, write_out_partials
from deploychain.audit.likely_classes import LikelyClasses
from deploychain.audit.registries import Registries, entry_results
from deploychain.audit.sources import Source
from deploychain.audit.tree import walk

# Functions that call each other with many arguments have more ways than can be followed. A question of real training
# code takes under 100 steps, a file under 20,000.
_PER_QUESTION = 600
_PER_FILE = 100_000


class Symbols(Index):
    """The index of one file, and what can be followed through it."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.kept: list[ast.AST] = []  # nodes made on the way: a cache is by id, which must not be given again
        self._depth = 0
        self._steps = self._all_steps = 0
        self._start()
        write_out_partials(self)
        write_out_keywords(self)
        if write_out_entries(self):
            self._start()  # calls were changed: what was found out about them before is no longer true

    def _start(self) -> None:
        self._qual_cache: dict[tuple[int, int], str | None] = {}
        self._class_cache: dict[tuple[int, int], Scope | None] = {}
        self._call_site_cache: dict[int, list[ast.Call]] = {}
        self._resolve_cache: dict[tuple[int, int], list[Ref]] = {}
        self.configs = Configs(self)
        self.likely = LikelyClasses(self)
        self.registries = Registries(self)
        self.constants = Constants(self)
        self.const = self.constants.value
        self.default = self.constants.default
        self.identity = Identities(self).of
        self.decisions = Decisions(self)

    def qual(self, expr: ast.AST, scope: Scope | None = None, depth: int = 0) -> str | None:
        """The canonical dotted name of a function, class or module expression: "torch.autocast"; None if not known."""
        scope = scope or self.scope(expr)
        key = (id(expr), id(scope))
        if key not in self._qual_cache:
            self.kept.append(expr)
            self._qual_cache[key] = None  # asked for again on the way: `batch = batch["tokens"].to(device)`
            self._qual_cache[key] = self._qual(expr, scope, depth)
        return self._qual_cache[key]

    def _qual(self, expr: ast.AST, scope: Scope, depth: int) -> str | None:
        if isinstance(expr, ast.Name):
            for dotted_name in self.imports.get(expr.id, ()):
                return canonical(dotted_name)
            return self._qual_bound(self.bindings(expr.id, scope), depth) if depth < 4 else None
        if isinstance(expr, ast.Attribute):
            base = self.qual(expr.value, scope, depth)
            if base is None and depth < 4 and isinstance(expr.value, ast.Name) and expr.value.id == "self":
                return self._qual_bound(self.bindings(f"self.{expr.attr}", scope), depth)
            return canonical(f"{base}.{expr.attr}") if base else None
        if isinstance(expr, ast.Subscript) and depth < 4:  # `LOSSES["bce"]` of a table of classes
            items = self._resolve_item(expr, scope, 4, frozenset())
            if len(items) == 1 and isinstance(items[0].expr, ast.Name | ast.Attribute):
                return self.qual(items[0].expr, items[0].scope, depth + 1)
        if isinstance(expr, ast.Call) and last_name(expr.func) == "getattr" and len(expr.args) > 1:
            base, leaf = self.qual(expr.args[0], scope, depth), self.const(expr.args[1], scope)
            return canonical(f"{base}.{leaf}") if base and isinstance(leaf, str) and len(expr.args) == 2 else None
        return None

    def _qual_bound(self, bindings: list[Binding], depth: int) -> str | None:
        """The name of what is bound to another name: `Loss = nn.BCELoss`."""
        for b in bindings:
            if not b.loop and b.place is None and isinstance(b.value, ast.Name | ast.Attribute | ast.Subscript):
                found = self.qual(b.value, b.scope, depth + 1)
                if found:
                    return found
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
            own = self.runs_as(self._class_of(scope))
            for cls in self.bases(own):
                for candidate in candidates:
                    if candidate.owner is cls:
                        written = self._of_subclass(own, candidates) if left_open(candidate) else None
                        return written or candidate
            return self._of_subclass(own, candidates)
        if isinstance(func.value, ast.Call) and last_name(func.value.func) == "super":
            return None
        named = func.value.id if isinstance(func.value, ast.Name) and func.value.id not in self.imports else ""
        cls_scope = self.classes.get(named) or self.instance_class(func.value, scope)  # `Net.load(path)`
        if cls_scope is not None:
            for cls in self.bases(cls_scope):
                for candidate in candidates:
                    if candidate.owner is cls:
                        return candidate
        return None

    def _of_subclass(self, cls: Scope | None, candidates: list[Scope]) -> Scope | None:
        """The method that the one subclass in this file has, of those that a base class calls and leaves open."""
        found = [
            c for c in candidates
            if cls is not None and c.owner is not cls and any(base is cls for base in self.bases(c.owner))
        ]  # fmt: skip
        return found[0] if len(found) == 1 else None

    def instance_class(self, expr: ast.expr, scope: Scope) -> Scope | None:
        """The class of this file that an expression is an instance of, where that is clear."""
        key = (id(expr), id(scope))
        if key not in self._class_cache:
            self.kept.append(expr)
            self._class_cache[key] = None  # what depends on itself is not clear
            self._class_cache[key] = self._instance_class(expr, scope)
        return self._class_cache[key]

    def _instance_class(self, expr: ast.expr, scope: Scope) -> Scope | None:
        for ref in self.resolve(expr, scope):
            call = strip_module_calls(ref.expr)
            if isinstance(call, ast.Call):
                name = constructed(call)
                if name in self.classes and self.qual(call.func, ref.scope) is None:
                    return self.classes[name]
                if name == "cls":  # of a class method
                    return self._class_of(ref.scope)
            elif isinstance(call, ast.Name):
                made = self._annotated(call.id, ref.scope) or self.likely.of(call.id, ref.scope)
                if made is not None:
                    return made
                if call is not ref.expr:  # a function returns `net.eval()`
                    return self.instance_class(call, ref.scope)
        return self._annotated(expr.id, scope) if isinstance(expr, ast.Name) else None  # callers tell nothing

    def _annotated(self, name: str, scope: Scope) -> Scope | None:
        """The class of this file that a parameter is annotated with, or that its default is made of."""
        function = self.parameter_scope(name, scope) if self.classes else None
        annotation = function.annotations.get(name) if function is not None else None
        if annotation is not None:
            return self.classes.get(annotation_name(annotation))
        default = self.default(name, scope) if function is not None else None  # `def fit(cb=ScaleCallback())`
        default = strip_module_calls(default) if default is not None else None
        return self.classes.get(last_name(default.func)) if isinstance(default, ast.Call) else None

    def classes_in(self, expr: ast.expr, scope: Scope) -> list[Scope]:
        """The classes of this file that a module expression is made of, with those of its submodules."""
        queue: list[ast.AST] = list(self._makings(expr, scope, 4))
        found: list[Scope] = []
        while queue:
            for node in walk(queue.pop()):
                cls = self.classes.get(constructed(node) if isinstance(node, ast.Call) else "")
                if cls is not None and cls not in found:
                    found.append(cls)
                    queue += [base.node for base in self.bases(cls)]
        return found

    def _makings(self, expr: ast.expr, scope: Scope, depth: int) -> Iterator[ast.expr]:
        """What made a module, through `net.eval()` that a function returns or is given."""
        for ref in self.resolve(strip_module_calls(expr), scope):
            inner = strip_module_calls(ref.expr)
            if depth and inner is not ref.expr and dotted(inner) is not None:
                yield from self._makings(inner, ref.scope, depth - 1)
            else:
                yield ref.expr

    def call_sites(self, function: Scope) -> list[ast.Call]:
        """Calls in this file that run the function."""
        key = id(function)
        if key not in self._call_site_cache:
            self._call_site_cache[key] = []  # while it is being found
            self._call_site_cache[key] = self._find_call_sites(function)
        return self._call_site_cache[key]

    def calls_ending(self, name: str) -> list[ast.Call]:
        """Calls in this file whose name ends so: `x.y.name()`, `name()`."""
        return self._call_sites.get(name, [])

    def constructions(self, cls: Scope) -> list[ast.Call]:
        """Calls in this file that make an instance of the class."""
        return [c for c in self._call_sites.get(cls.name, ()) if self.classes.get(cls.name) is cls]

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

    @property
    def exhausted(self) -> bool:
        """So many names were followed that no more are: findings of this file may be missing."""
        return self._all_steps > _PER_FILE

    def resolve(self, expr: ast.expr, scope: Scope, depth: int = 8, seen: frozenset[int] = frozenset()) -> list[Ref]:
        """What an expression may stand for: calls, constants, unresolved names. Never empty."""
        if not self._depth:
            self._steps = 0
        self._steps += 1
        self._all_steps += 1
        if depth <= 0 or id(expr) in seen or self._depth > 40 or self._steps > _PER_QUESTION or self.exhausted:
            return [Ref(expr, scope)]
        key = (id(expr), id(scope))
        if key in self._resolve_cache:
            return self._resolve_cache[key]
        self._depth += 1
        try:
            found = self._resolve(expr, scope, depth, seen)
        finally:
            self._depth -= 1
        if len(found) > 1:  # several ways to the same expression
            found = list({(id(r.expr), id(r.scope)): r for r in found}.values())
        if not seen and self._depth == 0:
            self.kept.append(expr)
            self._resolve_cache[key] = found
        return found

    def _resolve(self, expr: ast.expr, scope: Scope, depth: int, seen: frozenset[int]) -> list[Ref]:
        seen = seen | {id(expr)}
        if isinstance(expr, ast.IfExp):
            arm = self.decisions.arm(expr, scope) if depth > 2 else None
            return self._all((expr.body, expr.orelse) if arm is None else (arm,), scope, depth, seen)
        if isinstance(expr, ast.BoolOp):
            first = self.const(expr.values[0], scope, 2) if isinstance(expr.op, ast.Or) and depth > 2 else None
            known = isinstance(first, str | int | float) and first and not isinstance(first, bool)
            return self._all(tuple(expr.values[:1] if known else expr.values), scope, depth, seen)
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
        if isinstance(expr, ast.Subscript):  # `{"bce": ...}[name]`, `LOSSES[args.loss]`
            return self._resolve_item(expr, scope, depth, seen) or [Ref(expr, scope)]
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
        if isinstance(expr, ast.Name):
            function = self.parameter_scope(text, scope) if not bindings else self.same_object(text, bindings)
            function = function or (_read_before(expr, bindings) if bindings else None)
            if function is not None:
                found += self._resolve_parameter(function, text, depth, seen)
        if not bindings and isinstance(expr, ast.Attribute) and not text.startswith("self."):
            cls = self.instance_class(expr.value, scope) if depth > 2 else None
            for home in self.bases(cls):
                for binding in home.bindings.get(f"self.{expr.attr}", []):
                    if binding.value is not None and not binding.loop and binding.place is None:
                        found += self.resolve(binding.value, binding.scope, depth - 1, seen)
        if not found and not bindings and isinstance(expr, ast.Attribute) and text != f"self.{expr.attr}":
            found = self.configs.values(expr.value, expr.attr, scope, depth, seen)
        if not found and not bindings and isinstance(expr, ast.Attribute) and expr.attr in self.functions:
            method = self.local_function(expr, scope)
            for value in returns(method) if method is not None and _is_property(method) else ():
                found += self.resolve(value, method, depth - 1, seen)  # type: ignore[arg-type]
        return found

    @staticmethod
    def same_object(text: str, bindings: list[Binding]) -> Scope | None:
        """The function whose parameter a name still is: `net = net.half().eval()` rebinds it to the same object."""
        home = bindings[0].scope
        if text in home.parameters and all(
            b.value is not None and b.scope is home and dotted(strip_copy(strip_module_calls(b.value))) == text
            for b in bindings
        ):
            return home
        return None

    def _resolve_item(self, expr: ast.Subscript, scope: Scope, depth: int, seen: frozenset[int]) -> list[Ref]:
        """`LOSSES["bce"]` of a dict, or of an nn.ModuleDict made from one."""
        key = expr.slice.value if isinstance(expr.slice, ast.Constant) else None
        if isinstance(expr.slice, ast.Name | ast.Attribute | ast.Subscript | ast.Call) and depth > 2:
            key = self.const(expr.slice, scope, 2)  # `LOSSES[args.loss]` with the default of the argument
        base = expr.value
        if isinstance(base, ast.Call) and last_name(base.func) == "ModuleDict" and base.args:
            base = base.args[0]
        if not isinstance(key, str):
            return []
        found = self.configs.values(base, key, scope, depth, seen)
        entry = self.registries.chosen(expr, scope) if not found else None
        return found if entry is None else [entry]

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
        found: list[Ref] = []
        built = self.registries.made(call, scope) if depth > 2 and isinstance(call.func, ast.Attribute) else []
        if built:
            return [r for e in built for r in self.resolve(e.expr, e.scope, depth - 1, seen)]
        if function is None and isinstance(call.func, ast.Attribute) and call.func.attr in ("get", "pop") and call.args:
            key = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
            if isinstance(key, str):
                found = self.configs.values(call.func.value, key, scope, depth, seen)
                if not found and len(call.args) == 2:
                    found = self.resolve(call.args[1], scope, depth - 1, seen)
            return found
        if function is None:
            results = entry_results(self, call, scope) if depth > 2 else []
            found = [r for e in results for r in self.resolve(e.expr, e.scope, depth - 1, seen)]
            made = self.registries.made(call, scope) if not found and depth > 2 else []
            return found or [r for e in made for r in self.resolve(e.expr, e.scope, depth - 1, seen)]
        if function.name in ("forward", "__init__"):
            return []
        own = isinstance(call.func, ast.Attribute) and last_name(call.func.value) == "self"
        for each in run_by_self(self, function) if own else bodies(self, function):
            for value in self.decisions.live_returns(each):
                found += self.resolve(value, each, depth - 1, seen)
        return found

    def text(self, node: ast.AST) -> str:
        """Source of an expression, on one line, for messages."""
        try:
            text = ast.unparse(node)
        except (RecursionError, ValueError):
            return "..."
        return text if len(text) <= 60 else text[:57] + "..."


def _read_before(name: ast.Name, bindings: list[Binding]) -> Scope | None:
    """The function whose parameter a name still is where it stands: `net, x = self.cast(net.eval(), x)`."""
    first = min(bindings, key=lambda b: getattr(b.value, "lineno", 0))
    home, value = first.scope, first.value
    if name.id not in home.parameters or value is None or first.loop:
        return None
    return home if name.lineno <= (value.end_lineno or value.lineno) else None


def _is_property(method: Scope) -> bool:
    decorators = getattr(method.node, "decorator_list", ())
    return any(last_name(d) in ("property", "cached_property") for d in decorators)

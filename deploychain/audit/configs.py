"""What a configuration object that is written in the file holds: dataclasses, namespaces, dictionaries, argparse.

The values are those that a run without further arguments has. Whether an option is on is not decided by its default,
so `Symbols.const` takes numbers and strings from here and no booleans.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import Protocol

from deploychain.audit import documents
from deploychain.audit.astnames import Ref, Scope, annotated_fields, dotted, keyword, last_name, returns
from deploychain.audit.likely_settings import LikelySettings

NAMESPACES = frozenset(
    {
        "SimpleNamespace",
        "Namespace",
        "EasyDict",
        "edict",
        "AttrDict",
        "ConfigDict",
        "DotDict",
        "DotMap",
        "Box",
        "Munch",
        "Dict",
        "create",
        "dict",
        "OrderedDict",
        "ModuleDict",
    }
)
_AS_DICT = frozenset({"asdict", "_asdict", "vars", "model_dump", "to_dict"})
_FIELD = frozenset({"field", "Field"})
_PARSE = frozenset({"parse_args", "parse_known_args", "parse_args_into_dataclasses"})


class Names(Protocol):
    """The part of `Symbols` that is needed here."""

    calls: list[ast.Call]
    classes: dict[str, Scope]

    def resolve(
        self, expr: ast.expr, scope: Scope, depth: int = 8, seen: frozenset[int] = frozenset()
    ) -> list[Ref]: ...
    def scope(self, node: ast.AST) -> Scope: ...
    def bases(self, cls: Scope | None) -> Iterator[Scope]: ...
    def call_sites(self, function: Scope) -> list[ast.Call]: ...
    def constructions(self, cls: Scope) -> list[ast.Call]: ...
    def instance_class(self, expr: ast.expr, scope: Scope) -> Scope | None: ...
    def default(self, name: str, scope: Scope) -> ast.expr | None: ...
    def qual(self, expr: ast.AST, scope: Scope | None = None, depth: int = 0) -> str | None: ...
    def super_method(self, func: ast.expr, scope: Scope) -> Scope | None: ...
    def parameter_scope(self, name: str, scope: Scope) -> Scope | None: ...
    def class_of(self, scope: Scope) -> Scope | None: ...


class Configs:
    """Answers what `cfg.amp.dtype`, `args.lr`, `CFG["opset"]` and `cfg.get("eps", 1e-8)` were given in this file."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._options: dict[str, Ref] | None = None
        self._documents: dict[int, ast.expr | None] = {}
        self.likely = LikelySettings(names, self)

    def values(self, base: ast.expr, key: str, scope: Scope, depth: int, seen: frozenset[int]) -> list[Ref]:
        """What is found under a name in what an expression may stand for; empty where nothing is known."""
        if depth <= 0:
            return []
        found: list[Ref] = []
        for holder in self.names.resolve(base, scope, depth - 1, seen):
            found += self.held(holder, key, depth, seen)
        if not found and isinstance(base, ast.Name):  # `def load(args: ModelArgs)`, whatever callers hand over
            cls = self.names.instance_class(base, scope)
            found = self.of_class(cls, key, depth, seen) if cls is not None else []
        return found

    def held(self, holder: Ref, key: str, depth: int = 5, seen: frozenset[int] = frozenset()) -> list[Ref]:
        """What one dictionary, namespace or instance that is written in the file has under a name."""
        expr = holder.expr
        if isinstance(expr, ast.Dict):
            found: list[Ref] = []
            for k, v in zip(expr.keys, expr.values, strict=True):
                if k is None:  # {**DEFAULTS, ...}
                    found += self.values(v, key, holder.scope, depth - 1, seen)
                elif isinstance(k, ast.Constant) and k.value == key:
                    found += self.names.resolve(v, holder.scope, depth - 1, seen)
            return found
        if isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.BitOr):
            sides = (expr.left, expr.right)
            return [r for side in sides for r in self.values(side, key, holder.scope, depth - 1, seen)]
        if isinstance(expr, ast.Name):
            callers = self.callers(expr, holder.scope)
            if callers is not None:
                given = [(c, keyword(c, key)) for c in callers]
                return [
                    r
                    for c, value in given
                    if value is not None
                    for r in self.names.resolve(value, self.names.scope(c), depth - 1, seen)
                ]
            default = self.names.default(expr.id, holder.scope)  # `def build(cfg=DEFAULTS)` that nothing calls
            if isinstance(default, ast.Call):
                return self.values(default, key, holder.scope, depth - 1, seen)
            cls = self.names.classes.get(expr.id) or self.names.instance_class(expr, holder.scope)
            if cls is not None:
                return self.of_class(cls, key, depth, seen)
            if default is None or (isinstance(default, ast.Name) and default.id == expr.id):
                return self.likely.values(holder, key, depth, seen)
            return self.values(default, key, holder.scope, depth - 1, seen)
        if isinstance(expr, ast.Attribute):
            if key == "value" and self._enums:  # of a member, which is what was written for it
                return [holder]
            return self.likely.values(holder, key, depth, seen)
        if not isinstance(expr, ast.Call):
            return []
        name = last_name(expr.func)
        owner = self.names.class_of(holder.scope) if name == "cls" else None
        if owner is not None:  # of a class method: `return cls(**vars(parser.parse_args()))`
            name = owner.name
        elif name not in self.names.classes:  # `from types import SimpleNamespace as NS`
            name = (self.names.qual(expr.func, holder.scope) or name).rpartition(".")[2]
        if name in _AS_DICT:
            made = expr.args[0] if expr.args else getattr(expr.func, "value", None)
            return self.values(made, key, holder.scope, depth - 1, seen) if isinstance(made, ast.expr) else []
        if name in ("replace", "_replace", "evolve"):  # another value for some of the fields
            set_to = keyword(expr, key)
            if set_to is not None:
                return self.names.resolve(set_to, holder.scope, depth - 1, seen)
            made = expr.args[0] if expr.args else getattr(expr.func, "value", None)
            return self.values(made, key, holder.scope, depth - 1, seen) if isinstance(made, ast.expr) else []
        if name in _FIELD:
            default = _field_default(expr)
            return self.values(default, key, holder.scope, depth - 1, seen) if default is not None else []
        above = self.names.super_method(expr.func, holder.scope)
        if above is not None:
            return [r for v in returns(above) for r in self.values(v, key, above, depth - 1, seen)]
        if name in documents.READERS and expr.args:
            document = self._document(expr, holder.scope, depth, seen)
            if document is not None:
                return self.held(Ref(document, holder.scope), key, depth - 1, seen)
        if name in _PARSE:
            option = self.options().get(key)
            return [option] if option is not None else []
        set_to = keyword(expr, key)
        if set_to is not None and (name in NAMESPACES or name in self.names.classes):
            return self.names.resolve(set_to, holder.scope, depth - 1, seen)
        if name in self.names.classes:
            fields = self._fields(self.names.classes[name]) if expr.args else []
            place = fields.index(key) if key in fields else len(expr.args)
            if place < len(expr.args) and not any(isinstance(a, ast.Starred) for a in expr.args):
                return self.names.resolve(expr.args[place], holder.scope, depth - 1, seen)
            rest = [k.value for k in expr.keywords if k.arg is None]
            held = [r for value in rest for r in self.values(value, key, holder.scope, depth - 1, seen)]
            return held or self.of_class(self.names.classes[name], key, depth, seen)
        if name in NAMESPACES and expr.args:
            return self.values(expr.args[0], key, holder.scope, depth - 1, seen)
        return []

    @cached_property
    def _enums(self) -> bool:
        """The file has an enumeration."""
        bases = (last_name(b) for cls in self.names.classes.values() for b in getattr(cls.node, "bases", ()))
        return any(base.endswith("Enum") for base in bases)

    def _document(self, call: ast.Call, scope: Scope, depth: int, seen: frozenset[int]) -> ast.expr | None:
        """The mapping that a YAML or JSON text of the file holds."""
        if id(call) not in self._documents:
            texts = [r.expr for r in self.names.resolve(call.args[0], scope, depth - 1, seen)]
            text = texts[0].value if len(texts) == 1 and isinstance(texts[0], ast.Constant) else None
            self._documents[id(call)] = documents.read(call, text) if isinstance(text, str) else None
        return self._documents[id(call)]

    def callers(self, expr: ast.expr, scope: Scope) -> list[ast.Call] | None:
        """The calls whose further keywords `kw` of `def f(x, **kw)` holds; None where it is another name."""
        arguments = getattr(scope.node, "args", None)
        kwarg = arguments.kwarg if isinstance(arguments, ast.arguments) else None
        if kwarg is None or not isinstance(expr, ast.Name) or expr.id != kwarg.arg or kwarg.arg in scope.bindings:
            return None
        if scope.name == "__init__" and scope.owner is not None:
            return self.names.constructions(scope.owner)
        return self.names.call_sites(scope)

    @staticmethod
    def _fields(cls: Scope) -> list[str]:
        """The fields of a dataclass or named tuple, in the order of its arguments."""
        if any(isinstance(s, ast.FunctionDef) and s.name == "__init__" for s in cls.body):
            return []
        return annotated_fields(cls)

    def of_class(self, cls: Scope, key: str, depth: int, seen: frozenset[int]) -> list[Ref]:
        """A class attribute or the default of a dataclass field, without what instances are given later."""
        for home in self.names.bases(cls):
            found: list[Ref] = []
            for binding in home.bindings.get(key, []):
                value = binding.value
                if value is None or binding.loop or binding.place is not None:
                    continue
                if isinstance(value, ast.Call) and last_name(value.func) in _FIELD:
                    default = _field_default(value)
                    if default is None:
                        continue
                    value = default
                found += self.names.resolve(value, home, depth - 1, seen)
            if found:
                return found
            for statement in home.body:
                if isinstance(statement, ast.AnnAssign) and dotted(statement.target) == key and statement.value is None:
                    held = self.names.classes.get(annotation_name(statement.annotation))
                    if held is not None:
                        return [Ref(ast.copy_location(_call(ast.Name(held.name, ast.Load())), statement), home)]
        return []

    def options(self) -> dict[str, Ref]:
        """Name -> default of every `add_argument` of the file that has one."""
        if self._options is None:
            self._options = {}
            for call in self.names.calls:
                default = keyword(call, "default")
                if last_name(call.func) not in ("add_argument", "add_option", "option") or default is None:
                    continue
                flags = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                long = [f for f in flags if f.startswith("--")] or flags
                target = keyword(call, "dest")
                if isinstance(target, ast.Constant) and isinstance(target.value, str):
                    long = [target.value]
                if long:
                    self._options.setdefault(
                        long[0].lstrip("-").replace("-", "_"), Ref(default, self.names.scope(call))
                    )
        return self._options


def _field_default(field: ast.Call) -> ast.expr | None:
    """What a field of a dataclass is where nothing else is given."""
    default, factory = keyword(field, "default"), keyword(field, "default_factory")
    if default is not None or factory is None:
        return default
    return factory.body if isinstance(factory, ast.Lambda) else ast.copy_location(_call(factory), field)


def annotation_name(annotation: ast.expr) -> str:
    """The class that an annotation names: `Config`, `"Config"`, `mod.Config`, `Config | None`, `Optional[Config]`."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value.strip().rpartition(".")[2]
    if isinstance(annotation, ast.BinOp):
        left = annotation_name(annotation.left)
        return left if left not in ("", "None") else annotation_name(annotation.right)
    if isinstance(annotation, ast.Subscript) and last_name(annotation.value) == "Optional":
        return annotation_name(annotation.slice)
    return last_name(annotation)


def _call(func: ast.expr) -> ast.Call:
    return ast.Call(func=func, args=[], keywords=[])

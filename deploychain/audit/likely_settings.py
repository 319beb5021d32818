"""What `cfg.lr` is where nothing says which configuration `cfg` is: that of the one class, or option, of this name."""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import TYPE_CHECKING

from deploychain.audit.astnames import Ref, Scope, annotated_fields, last_name

if TYPE_CHECKING:
    from deploychain.audit.configs import Configs, Names

_NAMED = re.compile(
    r"^(\w+_|_)?(args|arguments|opts?|options|cfgs?|conf|config|configuration|hparams?|hps?|hyper\w*|params|settings?|"
    r"spec|flags|ns|namespace|cli|stats|recipe|profile)$",
    re.IGNORECASE,
)
_PLAIN = frozenset({"dataclass", "define", "frozen", "attrs", "s", "configclass"})
_BASES = frozenset(
    {"NamedTuple", "BaseModel", "BaseSettings", "TypedDict", "object", "SimpleNamespace", "Serializable"}
)


class LikelySettings:
    """Configurations that a function is handed from code that is not shown."""

    def __init__(self, names: Names, configs: Configs) -> None:
        self.names = names
        self.configs = configs

    def values(self, holder: Ref, key: str, depth: int, seen: frozenset[int]) -> list[Ref]:
        """The default of the setting, or what the instances of this file are given for it."""
        owners = self._owners.get(key, ())
        if not owners and key not in self.configs.options():
            return []
        expr = holder.expr
        leaf = last_name(expr)
        if isinstance(expr, ast.Name) and self.names.parameter_scope(expr.id, holder.scope) is None:
            return []
        named = _NAMED.match(leaf) is not None
        if len(owners) == 1 and (named or (len(leaf) > 2 and leaf.lower() in owners[0].name.lower())):
            return self._of(owners[0], key, depth, seen)
        return [self.configs.options()[key]] if named and not owners else []

    def _of(self, cls: Scope, key: str, depth: int, seen: frozenset[int]) -> list[Ref]:
        made = [Ref(call, self.names.scope(call)) for call in self.names.constructions(cls)[:4]]
        if not made:
            return self.configs.of_class(cls, key, depth, seen)
        return [r for call in made for r in self.configs.held(call, key, depth - 1, seen)]

    @cached_property
    def _owners(self) -> dict[str, list[Scope]]:
        """Name of a setting -> the classes that only hold values and have it."""
        owners: dict[str, list[Scope]] = {}
        for cls in self.names.classes.values():
            if _holds_values(cls):
                for field in {*annotated_fields(cls), *cls.bindings}:
                    owners.setdefault(field, []).append(cls)
        return owners


def _holds_values(cls: Scope) -> bool:
    node = cls.node
    decorators = [d.func if isinstance(d, ast.Call) else d for d in getattr(node, "decorator_list", ())]
    bases = [last_name(b) for b in getattr(node, "bases", ())]
    if any(last_name(d) in _PLAIN for d in decorators) or any(b in _BASES - {"object"} for b in bases):
        return True
    fields = [s for s in cls.body if isinstance(s, ast.Assign | ast.AnnAssign)]
    methods = [s for s in cls.body if isinstance(s, ast.FunctionDef) and not s.decorator_list]
    return bool(fields) and not methods and all(b in _BASES for b in bases)

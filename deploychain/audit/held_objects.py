"""What an object of the file was made of: `GradReport(model, scaler, optimizer)` holds the caller's optimiser."""

from __future__ import annotations

import ast

from deploychain.audit.astnames import Scope, annotated_fields, argument_for, constructed, dotted
from deploychain.audit.inheritance import method_of
from deploychain.audit.symbols import Symbols

_NOTHING: dict[str, ast.expr] = {}


class HeldObjects:
    """For names of one function: by which names the function itself knows what they hold."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._parts: dict[tuple[str, int], dict[str, ast.expr]] = {}

    def of(self, expr: ast.expr, scope: Scope) -> dict[str, ast.expr]:
        """ ".optimizer" -> `opt` of `state` that is `State(net, opt)`, "['optimizer']" -> `opt` of a dictionary."""
        text = dotted(expr)
        if text is None or text in ("self", "cls"):
            return _NOTHING
        key = (text, id(self.symbols.class_of(scope) if text.startswith("self.") else scope))
        if key not in self._parts:
            self._parts[key] = self._of(text, scope)
        return self._parts[key]

    def _of(self, text: str, scope: Scope) -> dict[str, ast.expr]:
        bindings = self.symbols.bindings(text, scope)
        if len(bindings) != 1 or bindings[0].loop or bindings[0].place is not None:
            return _NOTHING
        made, home = bindings[0].value, bindings[0].scope
        found: dict[str, ast.expr] = {}
        if isinstance(made, ast.Dict):
            for name, value in zip(made.keys, made.values, strict=True):
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    found[f"[{name.value!r}]"] = value
        elif isinstance(made, ast.Call):
            cls = self.symbols.classes.get(constructed(made))
            if cls is None:
                found = {f"[{k.arg!r}]": k.value for k in made.keywords if dotted(made.func) == "dict"}
            else:
                found = self._of_instance(cls, made)
        own = text.startswith("self.")
        known = {part: self._here(value, home, own=own) for part, value in found.items()}
        return {
            part: value
            for part, value in known.items()
            if value is not None and (own or home is scope) and not self.symbols.bindings(text + part, scope)
        }

    def _of_instance(self, cls: Scope, made: ast.Call) -> dict[str, ast.expr]:
        """The attributes that are an argument of the constructor and nothing else."""
        init = method_of(self.symbols, cls, "__init__")
        if init is None:  # a dataclass, or a named tuple
            fields = annotated_fields(cls)
            given = dict(zip(fields, made.args, strict=False)) | {k.arg: k.value for k in made.keywords if k.arg}
            return {f".{name}": value for name, value in given.items() if not isinstance(value, ast.Starred)}
        found: dict[str, ast.expr] = {}
        for base in self.symbols.bases(cls):
            for name, bindings in base.bindings.items():
                value = bindings[0].value
                if len(bindings) != 1 or not name.startswith("self.") or bindings[0].scope is not init:
                    continue
                if isinstance(value, ast.Name) and value.id in init.parameters and bindings[0].place is None:
                    argument = argument_for(made, init, value.id)
                    if argument is not None:
                        found[name.removeprefix("self")] = argument
        return found

    def _here(self, value: ast.expr, home: Scope, *, own: bool) -> ast.expr | None:
        """The object as this function or class names it: `optimizer` of `__init__` is `self.optimizer`."""
        text = dotted(value)
        if text is None or not own or text == "self" or text.startswith("self."):
            return value if text is not None else None
        cls = self.symbols.class_of(home)
        for name, bindings in cls.bindings.items() if cls is not None else ():
            if name.startswith("self.") and len(bindings) == 1 and bindings[0].scope is home:
                held = bindings[0].value
                if held is not None and dotted(held) == text and bindings[0].place is None:
                    made = ast.Attribute(ast.Name("self", ast.Load()), name.removeprefix("self."), ast.Load())
                    self.symbols.kept.append(made)
                    return made
        return None

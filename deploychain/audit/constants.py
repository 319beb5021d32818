"""The values of expressions that are written as literals, and the defaults of parameters."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from deploychain.audit.astnames import UNKNOWN, Scope, argument_for, arithmetic, dotted, last_name
from deploychain.audit.configs import NAMESPACES

if TYPE_CHECKING:
    from deploychain.audit.symbols import Symbols


class Constants:
    """Numbers, strings and containers of one file."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._values: dict[tuple[int, int, int], Any] = {}
        self._of_parameter: dict[tuple[int, str, int], Any] = {}
        self._default_cache: dict[int, dict[str, ast.expr | None]] = {}

    def value(self, expr: ast.expr | None, scope: Scope, depth: int = 4) -> Any:
        """The Python value of a literal expression (numbers, strings, containers, names bound once to those)."""
        if isinstance(expr, ast.Constant):
            return expr.value
        if expr is None or depth <= 0:
            return UNKNOWN
        key = (id(expr), id(scope), depth)
        if key not in self._values:
            self.symbols.kept.append(expr)
            self._values[key] = UNKNOWN  # what depends on itself is not known
            self._values[key] = self._value(expr, scope, depth)
        return self._values[key]

    def _value(self, expr: ast.expr, scope: Scope, depth: int) -> Any:
        if isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.USub | ast.UAdd | ast.Not):
            value = self.value(expr.operand, scope, depth)
            if value is UNKNOWN:
                return UNKNOWN
            if isinstance(expr.op, ast.Not):
                return not value
            if isinstance(value, int | float):
                return -value if isinstance(expr.op, ast.USub) else value
            return UNKNOWN
        if isinstance(expr, ast.BinOp):
            return arithmetic(expr.op, self.value(expr.left, scope, depth), self.value(expr.right, scope, depth))
        if isinstance(expr, ast.List | ast.Tuple | ast.Set):
            return [self.value(e, scope, depth) for e in expr.elts]
        if (
            isinstance(expr, ast.Call)
            and isinstance(expr.func, ast.Name)
            and expr.func.id in ("float", "int")
            and expr.args
        ):
            value = self.value(expr.args[0], scope, depth)
            try:
                return float(value) if expr.func.id == "float" else int(value)
            except (TypeError, ValueError, OverflowError):
                return UNKNOWN
        text = dotted(expr)
        if text is not None:
            bindings = self.symbols.bindings(text, scope)
            if len(bindings) == 1 and bindings[0].place is None and not bindings[0].loop:
                return self.value(bindings[0].value, bindings[0].scope, depth - 1)
            if len(bindings) == 1 and not bindings[0].loop:  # `name, size = MODELS[kind]`
                return self._setting(expr, scope, depth)
            if not bindings and isinstance(expr, ast.Name):
                function = self.symbols.parameter_scope(text, scope)
                if function is not None:
                    return self._default(function, text, depth)
            elif not bindings:
                return self._setting(expr, scope, depth)
        elif isinstance(expr, ast.Call):
            return self._setting(expr, scope, depth)
        return UNKNOWN

    def _setting(self, expr: ast.expr, scope: Scope, depth: int) -> Any:
        """The number or string that a configuration object holds unless a run is told otherwise."""
        known: Any = UNKNOWN
        for ref in self.symbols.resolve(expr, scope):
            value = self.value(ref.expr, ref.scope, depth - 1) if ref.expr is not expr else UNKNOWN
            if value is UNKNOWN or value is None or known not in (UNKNOWN, value):
                return UNKNOWN
            if isinstance(value, bool) and not self._given(ref.expr):
                return UNKNOWN
            known = value
        return known

    def _given(self, expr: ast.expr) -> bool:
        """A switch that an instance of a configuration is given: it is not only left as it is by default."""
        parent = self.symbols.parent.get(expr)
        call = self.symbols.parent.get(parent) if isinstance(parent, ast.keyword) else parent
        if not isinstance(call, ast.Call) or getattr(parent, "arg", "") in ("default", "default_factory"):
            return False
        return last_name(call.func) in self.symbols.classes or last_name(call.func) in NAMESPACES

    def default(self, name: str, scope: Scope) -> ast.expr | None:
        """The expression that is the default of a parameter which this scope sees."""
        function = self.symbols.parameter_scope(name, scope)
        return self._defaults(function).get(name) if function is not None else None

    def _defaults(self, function: Scope) -> dict[str, ast.expr | None]:
        if id(function) not in self._default_cache:
            self._default_cache[id(function)] = self._find_defaults(function)
        return self._default_cache[id(function)]

    @staticmethod
    def _find_defaults(function: Scope) -> dict[str, ast.expr | None]:
        if not isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return {}
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
        return values

    def _default(self, function: Scope, name: str, depth: int) -> Any:
        """A parameter's default, but only where no call in the file says otherwise."""
        key = (id(function), name, depth)
        if key not in self._of_parameter:
            self._of_parameter[key] = UNKNOWN  # what depends on itself is not known
            self._of_parameter[key] = self._find_default(function, name, depth)
        return self._of_parameter[key]

    def _find_default(self, function: Scope, name: str, depth: int) -> Any:
        values = self._defaults(function)
        sites = self.symbols.call_sites(function)
        if function.name == "__init__" and function.owner is not None:
            sites = self.symbols._call_sites.get(function.owner.name, [])
        given = [argument_for(call, function, name) for call in sites]
        passed = [g for g in given if g is not None]
        if passed:
            found = [self.value(g, self.symbols.scope(g), depth - 1) for g in passed]
            default = values.get(name) if len(passed) < len(given) and isinstance(found[0], bool | str) else None
            if default is not None:  # some calls leave the option as it is
                found.append(self.value(default, function, depth - 1))
            return found[0] if all(f == found[0] for f in found) else UNKNOWN
        default = values.get(name)
        if default is None:
            return self._option(function, name)
        if isinstance(default, ast.Call) and last_name(default.func) in ("Option", "Argument") and default.args:
            value = self.value(default.args[0], function, 1)  # typer.Option(17, "--opset")
            return UNKNOWN if value is None or isinstance(value, bool) else value
        return self.value(default, function, depth - 1)

    def _option(self, function: Scope, name: str) -> Any:
        """`@click.option("--opset", default=17)` over `def main(opset)`; whether a switch is on stays open."""
        for decorator in getattr(function.node, "decorator_list", ()):
            if isinstance(decorator, ast.Call) and last_name(decorator.func) == "option":
                option = self.symbols.configs.options().get(name)
                value = self.value(option.expr, option.scope, 1) if option is not None else UNKNOWN
                return UNKNOWN if value is None or isinstance(value, bool) else value
        return UNKNOWN

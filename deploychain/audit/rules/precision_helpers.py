"""Functions that make a model half or float as their argument says: `cast(model, dtype)`, `set_half(True)`."""

from __future__ import annotations

import ast
from typing import NamedTuple

from deploychain.audit.astnames import Scope, argument_for, dotted, last_name, strip_module_calls
from deploychain.audit.context import Context
from deploychain.audit.rules.half_roundtrips import is_full, walked_over
from deploychain.audit.rules.half_statistics import is_half
from deploychain.audit.tree import walk


class Helper(NamedTuple):
    """What a function casts, by the name it has there, and the parameter that decides to what."""

    module: str
    by: str | None  # None where it always makes the model half
    flag: bool | None = None  # the value of a switch that means half; None where the parameter is the dtype


class PrecisionHelpers:
    """The helpers of one file, looked at when a call of one is met."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._found: dict[int, Helper | None] = {}

    def cast(self, call: ast.Call, scope: Scope) -> tuple[str, bool] | None:
        """(the module as the caller names it, whether it is made half) of a call to such a helper."""
        if not call.args and not call.keywords:
            return None
        function = self.ctx.symbols.local_function(call.func, scope)
        helper = self._helper(function) if function is not None else None
        if function is None or helper is None:
            return None
        name = _as_called(call, function, helper.module)
        if helper.by is None:
            return (name, True) if name else None
        given = argument_for(call, function, helper.by)
        if given is None:
            return None
        if helper.flag is None:
            dtype = self.ctx.amp.dtype(given, scope)
            return (name, dtype == "fp16") if name and dtype in ("fp16", "fp32") else None
        value = self.ctx.symbols.const(given, scope)
        return (name, value is helper.flag) if name and isinstance(value, bool) else None

    def is_fixed(self, call: ast.Call, scope: Scope) -> bool:
        """The helper makes the model half whatever it is told."""
        function = self.ctx.symbols.local_function(call.func, scope)
        helper = self._helper(function) if function is not None else None
        return helper is not None and helper.by is None

    def _helper(self, function: Scope) -> Helper | None:
        key = id(function)
        if key not in self._found:
            self._found[key] = self._by_dtype(function) or self._by_switch(function) or self._fixed(function)
        return self._found[key]

    def _by_dtype(self, function: Scope) -> Helper | None:
        """`for p in model.parameters(): p.data = p.data.to(dtype)`"""
        if ".data" not in self.ctx.text:
            return None
        for node in walk(function.node):
            if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.value.args):
                continue
            target, dtype = node.targets[0], node.value.args[-1]
            if not (isinstance(target, ast.Attribute) and target.attr == "data" and isinstance(dtype, ast.Name)):
                continue
            if last_name(node.value.func) == "to" and dtype.id in function.parameters:
                walked = walked_over(self.ctx, dotted(target.value) or "", function)
                return Helper(walked, dtype.id, None) if walked is not None else None
        return None

    def _by_switch(self, function: Scope) -> Helper | None:
        """`self.net.half() if half else self.net.float()`, and the same as a statement."""
        if not function.parameters:
            return None
        for node in walk(function.node):
            if not (isinstance(node, ast.If | ast.IfExp) and isinstance(node.test, ast.Name)):
                continue
            if node.test.id not in function.parameters:
                continue
            halves, floats = self._casts(node.body, function), self._casts(node.orelse, function)
            same = [n for n, half in halves.items() if n in floats and floats[n] is not half]
            if same:
                return Helper(same[0], node.test.id, halves[same[0]])
        return None

    def _fixed(self, function: Scope) -> Helper | None:
        """`model = model.half().eval()` of a parameter, and never back."""
        for statement in function.body:
            if not isinstance(statement, ast.Expr | ast.Assign):
                continue
            for name, half in self._casts(statement, function).items():
                back = isinstance(statement, ast.Assign) and dotted(statement.targets[0]) != name
                if half and name in function.parameters and not back:
                    whole = self._floats(function)
                    return Helper(name, None) if name not in whole else None
        return None

    def _floats(self, function: Scope) -> set[str]:
        return {
            dotted(strip_module_calls(n.func.value)) or ""
            for n in walk(function.node)
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and is_full(self.ctx, n, function)
        }

    def _casts(self, branch: ast.AST | list[ast.stmt], scope: Scope) -> dict[str, bool]:
        found: dict[str, bool] = {}
        for part in branch if isinstance(branch, list) else [branch]:
            for node in walk(part):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    name = dotted(strip_module_calls(node.func.value))
                    half = is_half(self.ctx, node, scope)
                    if name is not None and (half or is_full(self.ctx, node, scope)):
                        found.setdefault(name, half)
        return found


def _as_called(call: ast.Call, function: Scope, name: str) -> str | None:
    """The name that the caller has for what the function calls `name`."""
    root, dot, rest = name.partition(".")
    if root == "self" and isinstance(call.func, ast.Attribute):
        given: ast.expr | None = call.func.value
    else:
        given = argument_for(call, function, root)
    owner = dotted(given) if given is not None else None
    return f"{owner}{dot}{rest}" if owner is not None else None

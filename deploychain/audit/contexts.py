"""Which context manager a `with` enters, and what a project's own `autocast` helper is told."""

from __future__ import annotations

import ast

from deploychain.audit.astnames import Scope, argument_for, keyword, last_name
from deploychain.audit.symbols import Symbols
from deploychain.audit.values import words

_MAKERS = words(
    "no_grad enable_grad inference_mode set_grad_enabled nullcontext suppress no_sync join record_function profile "
    "autocast maybe_autocast amp_autocast autocast_context autocast_ctx stream device"
)


def entered(symbols: Symbols, expr: ast.expr, scope: Scope) -> ast.expr:
    """`with autocast() and no_grad():` enters no_grad only, `autocast() or no_grad()` autocast: both are true."""
    held = expr
    if isinstance(expr, ast.Name):
        bindings = symbols.bindings(expr.id, scope)
        if len(bindings) == 1 and isinstance(bindings[0].value, ast.BoolOp):
            held = bindings[0].value
    if not isinstance(held, ast.BoolOp):
        return expr
    if isinstance(held.op, ast.Or):
        return held.values[0] if _makes(held.values[0]) else expr
    return held.values[-1] if all(_makes(value) for value in held.values[:-1]) else expr


def _makes(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Call) and last_name(expr.func) in _MAKERS


def told(call: ast.Call) -> ast.expr | None:
    """The switch that a helper which is not torch's gets: `autocast(False)`, `autocast(enabled=use_amp)`."""
    given = keyword(call, "enabled", "enable", "use_amp", "use")
    return given if given is not None else call.args[0] if call.args else None


def parameter_given(symbols: Symbols, call: ast.Call, function: Scope, switch: ast.expr | None) -> ast.expr | None:
    """What a call gives for the parameter that `autocast(enabled=switch)` inside the function names, or its default."""
    if not isinstance(switch, ast.Name) or switch.id not in function.parameters:
        return None
    given = argument_for(call, function, switch.id)
    return given if given is not None else symbols.default(switch.id, function)

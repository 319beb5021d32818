"""What a GradScaler is made with: in constructors, Accelerate's kwargs, partial, subclasses, DeepSpeed tables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from deploychain.audit.astnames import Scope, argument, dotted, keyword, last_name
from deploychain.audit.context import Context

_POSITIONS = ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled")
_SCALERS = ("GradScaler", "ShardedGradScaler")
# DeepSpeed's names; the power is log2 of the scale.
_DEEPSPEED = {"growth_interval": "loss_scale_window", "init_scale": "initial_scale_power"}


class Setting(NamedTuple):
    """One setting of a scaler and where it is written."""

    value: ast.expr
    call: ast.expr  # the constructor, for the place of a finding
    scope: Scope
    power: bool = False  # the value is the exponent of two


def settings(ctx: Context, name: str) -> Iterator[Setting]:
    """Every value that the file gives to "init_scale" or "growth_interval" of a scaler that is not disabled."""
    for call, scope, first in _constructions(ctx):
        if ctx.amp.call_enabled(call, scope) is False:
            continue
        value = argument(call, first + _POSITIONS.index(name), name)
        if value is None:
            value = _put_in_later(ctx, call, name)
        if value is not None:
            yield Setting(value, call, scope)
        else:
            yield from _of_every_profile(ctx, call, name)
    key = _DEEPSPEED.get(name)
    if key is not None and key in ctx.text:
        for table in ctx.symbols.nodes(ast.Dict):
            names = [getattr(k, "value", None) for k in table.keys]
            if key in names and {"enabled", "loss_scale", "hysteresis"} & set(names):
                yield Setting(table.values[names.index(key)], table, ctx.symbols.scope(table), name == "init_scale")


def _of_every_profile(ctx: Context, call: ast.Call, name: str) -> Iterator[Setting]:
    """`GradScaler(**PROFILES[args.profile])`: what each entry of the table has, where the file does not choose one."""
    scope = ctx.symbols.scope(call)
    for star in (k.value for k in call.keywords if k.arg is None and isinstance(k.value, ast.Subscript)):
        for table in ctx.symbols.resolve(star.value, scope):
            for entry in table.expr.values if isinstance(table.expr, ast.Dict) else ():
                for ref in ctx.symbols.configs.values(entry, name, table.scope, 4, frozenset()):
                    yield Setting(ref.expr, call, ref.scope)


def _constructions(ctx: Context) -> Iterator[tuple[ast.Call, Scope, int]]:
    """(call, scope, index of its first setting among the positional arguments)."""
    symbols = ctx.symbols
    for call in symbols.calls:
        scope = symbols.scope(call)
        if ctx.amp.is_scaler_call(call, scope):
            yield call, scope, 1 if symbols.qual(call.func) == "torch.amp.GradScaler" else 0
        elif last_name(call.func) == "GradScalerKwargs":
            yield call, scope, 0
        elif last_name(call.func) == "partial" and call.args and _is_scaler_class(ctx, call.args[0], scope):
            yield call, scope, 1 + (symbols.qual(call.args[0]) == "torch.amp.GradScaler")
        elif last_name(call.func) == "__init__":
            cls = symbols.class_of(scope)
            bases = getattr(cls.node, "bases", []) if cls is not None else []
            if any(_is_scaler_class(ctx, b, symbols.module) for b in bases):
                yield call, scope, 1 if symbols.qual(bases[0]) == "torch.amp.GradScaler" else 0
        elif last_name(call.func) in symbols.classes:
            bases = getattr(symbols.classes[last_name(call.func)].node, "bases", [])
            if any(_is_scaler_class(ctx, b, symbols.module) for b in bases):
                yield call, scope, 99  # keywords only: the subclass has its own order


def _is_scaler_class(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    return (ctx.symbols.qual(expr, scope) or "").rpartition(".")[2] in _SCALERS


def _put_in_later(ctx: Context, call: ast.Call, name: str) -> ast.expr | None:
    """`kwargs["growth_interval"] = 16` before `GradScaler(**kwargs)`; or the dictionary as it was first written."""
    for star in (k.value for k in call.keywords if k.arg is None):
        text = dotted(star)
        for node in ctx.symbols.nodes(ast.Assign):
            target = node.targets[0]
            if (
                isinstance(target, ast.Subscript)
                and isinstance(target.slice, ast.Constant)
                and target.slice.value == name
                and text is not None
                and dotted(target.value) == text
            ):
                return node.value  # type: ignore[no-any-return]
        for ref in ctx.symbols.resolve(star, ctx.symbols.scope(call)):
            if isinstance(ref.expr, ast.Dict):
                for k, v in zip(ref.expr.keys, ref.expr.values, strict=True):
                    if isinstance(k, ast.Constant) and k.value == name:
                        return v
            elif isinstance(ref.expr, ast.Call) and last_name(ref.expr.func) == "dict":
                return keyword(ref.expr, name)
    return None

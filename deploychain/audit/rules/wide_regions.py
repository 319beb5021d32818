"""CUDA regions with dtype=torch.float32: a float32 island, or a training step that was meant to be mixed precision.

On CUDA such a region is on and runs every listed op in float32. That is the usual way to keep one part of a model out
of an outer region, so it is a fault only where the region encloses the model of a training step and nothing in the file
runs in half precision.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from deploychain.audit.astnames import UNKNOWN, Scope, dotted, keyword, last_name
from deploychain.audit.context import Context
from deploychain.audit.frameworks import Region
from deploychain.audit.tree import walk
from deploychain.audit.values import runs_a_model

_BACKWARD = frozenset({"backward", "manual_backward"})
_NO_GRAD = frozenset({"no_grad", "inference_mode"})
_LOSSES = re.compile(r"loss|criterion|metric|accuracy", re.IGNORECASE)
_STEPS = frozenset({"training_step", "forward_step", "shared_step", "train_forward", "compute_loss"})
_SWITCHES = ("enabled", "amp", "use_amp", "mixed_precision")
_MIXED = re.compile(r"^amp|mixed|half|^(fp|float)?16$", re.IGNORECASE)
_SHORT = re.compile(r"^[A-Z]$|^[A-Z]_\w{1,3}$")  # the G and D of adversarial training


def trains_in_float32(ctx: Context, region: Region, body: Sequence[ast.stmt], scope: Scope) -> bool:
    """The region encloses the forward pass of a training step whose precision nothing else in the file lowers."""
    if "backward" not in ctx.text or scope.name == "forward" or _off_on_purpose(ctx, region):
        return False
    if not any(_runs_model(ctx, statement) for statement in body) or _half_elsewhere(ctx):
        return False
    if _in_no_grad(ctx, body[0]) or _model_before(ctx, scope, body[0]):
        return False
    return _trained(ctx, scope)


def _off_on_purpose(ctx: Context, region: Region) -> bool:
    """float32 is a choice: enabled=False among the settings, a scaler that goes with the dtype, a dtype by name."""
    made = [(region.node, ctx.symbols.scope(region.node))] if isinstance(region.node, ast.Call) else []
    if any(_called_mixed(ctx, call, scope) for call, scope in made):
        return False
    scalers = [(c, ctx.symbols.scope(c)) for c in ctx.amp.scaler_calls]
    for call, scope in [*made, *scalers]:
        enabled = keyword(call, "enabled")
        if enabled is None:
            continue
        values = [r.expr for r in ctx.symbols.resolve(enabled, scope)]
        if ctx.amp.call_enabled(call, scope) is False or any(getattr(v, "value", None) is False for v in values):
            return True
        if any("dtype" in ctx.str(v) or "float" in ctx.str(v) for v in [enabled, *values]):
            return True
    asked = bool(scalers) or any(keyword(call, "enabled") is not None for call, _ in made)
    return not asked and any(_by_name(ctx, call, scope) for call, scope in made)


def _called_mixed(ctx: Context, call: ast.Call, scope: Scope) -> bool:
    """float32 under a name that says mixed precision: `{"amp": torch.float32}["amp"]`."""
    made: ast.AST | None = call
    while isinstance(made, ast.expr):  # `{"amp": lambda: torch.autocast("cuda", torch.float32)}`
        above = ctx.symbols.parent.get(made)
        if isinstance(above, ast.Dict) and made in above.values:
            return bool(_MIXED.search(str(getattr(above.keys[above.values.index(made)], "value", ""))))
        made = above
    given = keyword(call, "dtype") or (call.args[1] if len(call.args) > 1 else None)
    text = dotted(given) if given is not None else None
    sources = [given, *(b.value for b in ctx.symbols.bindings(text, scope) if b.value is not None)] if text else [given]
    for source in sources:
        if not isinstance(source, ast.Subscript):
            continue
        home = ctx.symbols.scope(source)
        key = ctx.symbols.const(source.slice, home)
        tables = [r.expr for r in ctx.symbols.resolve(source.value, home) if key is UNKNOWN]
        every = [getattr(k, "value", "") for t in tables if isinstance(t, ast.Dict) for k in t.keys]
        if any(_MIXED.search(str(word)) for word in every or [key]):
            return True
    return False


def _by_name(ctx: Context, call: ast.Call, scope: Scope) -> bool:
    """`{"float32": torch.float32, ...}[dtype]`: the setting may as well be this one."""
    given = keyword(call, "dtype")
    if given is None:
        return False
    sources = [given, *(b.value for b in ctx.symbols.bindings(getattr(given, "id", ""), scope) if b.value is not None)]
    for source in sources:
        named = last_name(getattr(source, "func", source)) == "getattr" and len(getattr(source, "args", ())) > 1
        key = source.slice if isinstance(source, ast.Subscript) else source.args[1] if named else None  # type: ignore[attr-defined]
        if key is not None:
            name = ctx.symbols.const(key, ctx.symbols.scope(source))
            if isinstance(name, str) and _switched_on(ctx, key):
                return False
            return not isinstance(name, str) or "32" in name  # not "mixed"
    return False


def _switched_on(ctx: Context, key: ast.expr) -> bool:
    """The table that names the dtype says as well that mixed precision is on: `{"enabled": True, "dtype": "fp32"}`."""
    if not isinstance(key, ast.Attribute | ast.Subscript):
        return False
    given = [
        getattr(ref.expr, "value", None)
        for switch in _SWITCHES
        for ref in ctx.symbols.configs.values(key.value, switch, ctx.symbols.scope(key), 6, frozenset())
    ]
    return bool(given) and all(value is True for value in given)


def _half_elsewhere(ctx: Context) -> bool:
    """Another region of this file, or a framework, that does run in half precision."""
    framework = ctx.amp.framework
    if any((framework.lightning, framework.fabric, framework.accelerate, framework.trainer)):
        return True
    for node in ctx.symbols.nodes(ast.With, ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef):
        opened = [i.context_expr for i in node.items] if isinstance(node, ast.With | ast.AsyncWith) else []
        opened += getattr(node, "decorator_list", [])
        for place in opened:
            region = ctx.amp.region(place, ctx.symbols.scope(place))
            if region is not None and region.half:
                return True
    return any(
        region.half
        for call, scope in ctx.calls_named("enter_context")
        if call.args and (region := ctx.amp.region(call.args[0], scope)) is not None
    )


def _runs_model(ctx: Context, node: ast.AST, depth: int = 2) -> bool:
    return any(_is_forward(ctx, call, depth) for call in walk(node) if isinstance(call, ast.Call))


def _is_forward(ctx: Context, call: ast.Call, depth: int) -> bool:
    scope, leaf = ctx.symbols.scope(call), last_name(call.func)
    if _LOSSES.search(leaf) and ctx.symbols.local_function(call.func, scope) is None:
        return False
    function = ctx.symbols.local_function(call.func, scope)
    if function is not None:
        return depth > 0 and function.name != "forward" and _runs_model(ctx, function.node, depth - 1)
    if ctx.symbols.qual(call.func) is not None or leaf in ctx.symbols.classes:
        return False
    if runs_a_model(leaf) or leaf in _STEPS or (isinstance(call.func, ast.Name) and _SHORT.match(leaf)):
        return True
    cls = ctx.symbols.instance_class(call.func, scope)
    return cls is not None and ctx.is_module_class(cls)


def _ancestors(ctx: Context, node: ast.AST) -> Iterator[ast.AST]:
    parent = ctx.symbols.parent.get(node)
    while parent is not None:
        yield parent
        parent = ctx.symbols.parent.get(parent)


def _in_no_grad(ctx: Context, node: ast.AST) -> bool:
    for parent in _ancestors(ctx, node):
        opened: list[ast.expr] = list(getattr(parent, "decorator_list", []))
        if isinstance(parent, ast.With | ast.AsyncWith):
            opened += [i.context_expr for i in parent.items]
        if any(last_name(o.func if isinstance(o, ast.Call) else o) in _NO_GRAD for o in opened):
            return True
    return False


def _model_before(ctx: Context, scope: Scope, first: ast.stmt) -> bool:
    """A model has run in this function before the region: the region is then a part of the pass, not the whole."""
    return any(
        call.lineno < first.lineno - 1
        and ctx.symbols.scope(call) is scope
        and not any(isinstance(p, ast.With | ast.AsyncWith) for p in _ancestors(ctx, call))
        and _is_forward(ctx, call, 0)
        for call in ctx.symbols.calls
    )


def _trained(ctx: Context, scope: Scope, depth: int = 3) -> bool:
    """backward is called in this function, or in one that calls it."""
    for call in ctx.symbols.calls:
        if last_name(call.func) in _BACKWARD and ctx.symbols.scope(call) is scope:
            return True
    return depth > 0 and any(_trained(ctx, ctx.symbols.scope(s), depth - 1) for s in ctx.symbols.call_sites(scope))

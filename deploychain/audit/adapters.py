"""Adapters that are put into a frozen model and then made float16 with it, before an optimiser trains them.

What is added after the cast, or is cast back to float32 before the optimiser is made, stays float32: that is how
adapters of a half model are meant to be trained.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted, last_name, strip_module_calls
from deploychain.audit.context import Context
from deploychain.audit.tree import walk

_ADDS = re.compile(
    r"^(add_adapters?|add_module|inject_adapter\w*|get_peft_model|apply_lora|inject_lora\w*|add_lora\w*)$"
)
_LISTS = frozenset({"parameters", "named_parameters", "modules", "named_modules"})
_UPCASTS = re.compile(r"cast_training_params|prepare_model_for_kbit_training|upcast|to_float32|params?_to_fp32")


def halved_adapters(ctx: Context, optimizer: ast.Call, model: str) -> ast.AST | None:
    """The cast that made the added, trainable parts of this frozen model float16; None where it is not clear."""
    scope = ctx.symbols.scope(optimizer)
    added, cast = False, None
    for node in _calls_and_assignments(ctx, scope):
        if node.lineno >= optimizer.lineno:
            break
        if isinstance(node, ast.Call) and (dtype := _cast(ctx, node, scope)) is not None:
            target = _root(ctx, node.func, scope)
            if target == model:
                cast = node if dtype == "fp16" else None
            elif dtype == "fp32" and cast is not None:
                return None  # something is made float32 again: perhaps what is trained
        elif _adds(ctx, node, model, scope):
            if cast is not None:
                return None
            added = True
        elif cast is not None and isinstance(node, ast.Call) and _may_upcast(ctx, node, scope):
            return None
    return cast if added else None


def cast_back(ctx: Context, optimizer: ast.Call, cast: ast.AST) -> bool:
    """Between the cast and the optimiser parameters are made float32 again, one by one or in a function."""
    scope = ctx.symbols.scope(optimizer)
    first = getattr(cast, "lineno", 0) if ctx.symbols.scope(cast) is scope else 0
    for node in _calls_and_assignments(ctx, scope):
        if first < node.lineno < optimizer.lineno and isinstance(node, ast.Call):
            if _may_upcast(ctx, node, scope):
                return True
            held = _root(ctx, node.func, scope).removesuffix(".data")
            if _cast(ctx, node, scope) == "fp32" and _is_parameter(ctx, held, scope):
                return True
    return False


def frozen_modules(ctx: Context) -> Iterator[tuple[ast.expr, Scope]]:
    """Modules whose parameters are all frozen: `net.requires_grad_(False)`, or in a loop over `net.parameters()`."""
    if "requires_grad" not in ctx.text:
        return
    for call, scope in ctx.calls_named("requires_grad_"):
        off = bool(call.args) and ctx.symbols.const(call.args[0], scope) is False
        held = call.func.value if isinstance(call.func, ast.Attribute) else None
        if off and held is not None:
            yield held, scope
            if isinstance(held, ast.Name) and not isinstance(_statement_parent(ctx, call), ast.If):
                yield from _looped(ctx, held, scope)
    for node in ctx.symbols.nodes(ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == "requires_grad" and isinstance(target.value, ast.Name):
            off = isinstance(node.value, ast.Constant) and node.value.value is False
            if off and not isinstance(ctx.symbols.parent.get(node), ast.If):
                yield from _looped(ctx, target.value, ctx.symbols.scope(node))


def _statement_parent(ctx: Context, node: ast.AST) -> ast.AST | None:
    parent = ctx.symbols.parent.get(node)
    return ctx.symbols.parent.get(parent) if parent is not None else None


def _looped(ctx: Context, name: ast.Name, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    for binding in ctx.symbols.bindings(name.id, scope):
        source = binding.value
        called = source.func if binding.loop and isinstance(source, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in ("parameters", "named_parameters"):
            yield called.value, binding.scope


def _is_parameter(ctx: Context, name: str, scope: Scope) -> bool:
    return any(
        b.loop and b.value is not None and any(last_name(n) in _LISTS for n in walk(b.value))
        for b in ctx.symbols.bindings(name, scope)
    )


def _calls_and_assignments(ctx: Context, scope: Scope) -> list[ast.Call | ast.Assign]:
    found: list[ast.Call | ast.Assign] = [c for c in ctx.symbols.calls if ctx.symbols.scope(c) is scope]
    found += [a for a in ctx.symbols.nodes(ast.Assign) if ctx.symbols.scope(a) is scope]
    return sorted(found, key=lambda n: (n.lineno, n.col_offset))


def _cast(ctx: Context, call: ast.Call, scope: Scope) -> str | None:
    if not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr in ("half", "float") and not call.args:
        return "fp16" if call.func.attr == "half" else "fp32"
    if call.func.attr == "to":
        for given in [*call.args, *(k.value for k in call.keywords if k.arg == "dtype")]:
            dtype = ctx.amp.dtype(given, scope) if not isinstance(given, ast.Constant) else None
            if dtype in ("fp16", "fp32"):
                return dtype
    return None


def _root(ctx: Context, func: ast.expr, scope: Scope) -> str:
    """The name that a chain of calls starts from."""
    return dotted(strip_module_calls(func.value)) or "" if isinstance(func, ast.Attribute) else ""


def _adds(ctx: Context, node: ast.Call | ast.Assign, model: str, scope: Scope) -> bool:
    """A layer is put into the model here, or in a function of the file that gets it."""
    if isinstance(node, ast.Assign):
        made = isinstance(node.value, ast.Call) and last_name(node.value.func)[:1].isupper()
        return made and any(_within(ctx, t, model, scope) for t in node.targets)
    name = last_name(node.func)
    inside = any(dotted(a) == model for a in node.args)
    if _ADDS.match(name) and (inside or _root(ctx, node.func, scope) == model):
        return True
    if name == "setattr" and len(node.args) == 3:
        return _within(ctx, node.args[0], model, scope, itself=True)
    function = ctx.symbols.local_function(node.func, scope) if inside else None
    return function is not None and any(_layers_set(ctx, function))


def _layers_set(ctx: Context, function: Scope) -> Iterator[bool]:
    for node in walk(function.node):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            yield any(isinstance(t, ast.Attribute) for t in node.targets) and last_name(node.value.func)[:1].isupper()
        elif isinstance(node, ast.Call):
            yield (last_name(node.func) == "setattr" and len(node.args) == 3) or bool(_ADDS.match(last_name(node.func)))


def _within(ctx: Context, target: ast.expr, model: str, scope: Scope, itself: bool = False) -> bool:
    """`model.head`, `model.blocks[0].mlp`, or `block.mlp` in a loop over parts of the model."""
    base = target
    while isinstance(base, ast.Attribute | ast.Subscript):
        text = dotted(base.value)
        if text == model:
            return True
        base = base.value
    if itself and dotted(target) == model:
        return True
    if not isinstance(base, ast.Name):
        return False
    return any(
        b.loop and b.value is not None and any(dotted(n) == model for n in walk(b.value))
        for b in ctx.symbols.bindings(base.id, scope)
    )


def _may_upcast(ctx: Context, call: ast.Call, scope: Scope) -> bool:
    if _UPCASTS.search(last_name(call.func)):
        return True
    function = ctx.symbols.local_function(call.func, scope)
    return function is not None and any(
        isinstance(n, ast.Call) and _cast(ctx, n, ctx.symbols.scope(n)) == "fp32" for n in walk(function.node)
    )


def frozen_in_chain(expr: ast.expr) -> bool:
    """`Net().requires_grad_(False).half()`"""
    while isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute):
        if expr.func.attr == "requires_grad_" and expr.args and getattr(expr.args[0], "value", None) is False:
            return True
        expr = expr.func.value
    return False

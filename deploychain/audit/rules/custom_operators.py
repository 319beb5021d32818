"""Operators that are registered with torch.library, and whether autocast knows of them."""

# ruff: noqa: E501  (messages are one piece of text)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, keyword, last_name
from deploychain.audit.context import NOTE, WARNING, Context
from deploychain.audit.finding import Finding, Severity
from deploychain.audit.rules.compiled_code import autocast_is_off, casts, is_extension, names_dtype
from deploychain.audit.tree import walk

_MAKES = frozenset({"torch.library.custom_op", "torch.library.triton_op"})


_AMP = re.compile(
    r"autocast\(|autocast_enabled|custom_(fwd|bwd)|GradScaler|Accelerator\(|mixed_precision\s*=|\b(bf|fp)16\s*=\s*True|"
    r"precision[\"']?\s*[=:]\s*[\"']?(bf)?16"
)


def severity(ctx: Context) -> Severity:
    """A note where the file neither trains nor speaks of autocast: whether anything runs under it is not seen here."""
    trains = ".backward(" in ctx.text and ".step(" in ctx.text
    return WARNING if trains or ctx.says(_AMP) else NOTE


def unregistered_operators(ctx: Context) -> Iterator[Finding]:
    """Operators of several tensors (or one, in compiled code) without an autocast rule."""
    if not any(word in ctx.text for word in ("custom_op", "triton_op", "Library(", "library.define")):
        return
    registered = _registered(ctx)
    if registered is None:
        return
    for call in ctx.symbols.calls:
        scope = ctx.symbols.scope(call)
        name = ctx.symbols.qual(call.func) or ""
        if name in _MAKES:
            found = _of_function(ctx, call, scope)
        elif name == "torch.library.define" and len(call.args) > 1:
            found = _of_schema(ctx.symbols.const(call.args[0], scope), ctx.symbols.const(call.args[1], scope))
        elif last_name(call.func) == "define" and call.args and _is_library(ctx, call):
            schema = ctx.symbols.const(call.args[0], scope)
            found = _of_schema(schema, schema)
        else:
            continue
        if found is None:
            continue
        label, tensors = found
        short = label.rpartition("::")[2]
        sites = _sites(ctx, call, label)
        if short in registered or (sites and all(autocast_is_off(ctx, c) or _casts_arguments(c) for c in sites)):
            continue
        yield ctx.finding(
            "R13", call, severity(ctx),
            f"custom operator {label} takes {tensors} tensor{'s' if tensors > 1 else ''} and has no autocast rule: under autocast its "
            f"kernel gets float16 activations{' next to float32 weights' if tensors > 1 else ''}",
            f'torch.library.register_autocast("{label}", "cuda", torch.float32)',
        )  # fmt: skip


def _registered(ctx: Context) -> set[str] | None:
    """Names of the operators with an autocast rule; None where one is given to names that are not written out."""
    if re.search(r"[\"']Autocast", ctx.text) or "DispatchKey.Autocast" in ctx.text:
        return None
    found: set[str] = set()
    for call, scope in ctx.calls_named("register_autocast"):
        holder = call.func.value if isinstance(call.func, ast.Attribute) else None
        if holder is not None and ctx.symbols.qual(call.func) is None:
            found.add(last_name(holder))
            for function in ctx.symbols.functions.get(last_name(holder), ()):
                found |= {label.rpartition("::")[2] for label in _labels(ctx, function)}
            continue
        label = ctx.symbols.const(call.args[0], scope) if call.args else None
        if not isinstance(label, str):
            return None
        found.add(label.rpartition("::")[2])
    return found


def _labels(ctx: Context, function: Scope) -> Iterator[str]:
    for decorator in getattr(function.node, "decorator_list", []):
        label = (
            ctx.symbols.const(decorator.args[0], function)
            if isinstance(decorator, ast.Call) and decorator.args
            else None
        )
        if isinstance(label, str):
            yield label


def _of_function(ctx: Context, call: ast.Call, scope: Scope) -> tuple[str, int] | None:
    """`@custom_op("lib::f", mutates_args=())` on a function, or `custom_op("lib::f", f, mutates_args=())`."""
    parent = ctx.symbols.parent.get(call)
    node: ast.AST | None = parent if isinstance(parent, ast.FunctionDef) else None
    if node is None and len(call.args) > 1:
        function = ctx.symbols.local_function(call.args[1], scope)
        node = function.node if function is not None else None
    label = ctx.symbols.const(call.args[0] if call.args else keyword(call, "name"), scope)
    if not isinstance(node, ast.FunctionDef):
        return None
    if "backward" in node.name or "_bwd" in node.name or casts(node):
        return None  # autocast is off in the backward pass
    given = ctx.symbols.const(keyword(call, "schema"), scope)
    if isinstance(given, str):
        tensors = given.split("->")[0].count("Tensor")
    else:
        every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        tensors = sum(a.annotation is not None and "Tensor" in ast.unparse(a.annotation) for a in every)
    if tensors < 2 and not (tensors == 1 and _is_compiled(ctx, node)):
        return None
    return (label if isinstance(label, str) else node.name), tensors


def _of_schema(label: object, schema: object) -> tuple[str, int] | None:
    if not isinstance(schema, str) or not isinstance(label, str) or "!" in schema:  # out= is never cast
        return None
    tensors = schema.split("->")[0].count("Tensor")
    name = label.split("(")[0].strip()
    return (name, tensors) if tensors >= 2 and "backward" not in name and not name.endswith("_bwd") else None


def _sites(ctx: Context, made: ast.Call, label: str) -> list[ast.Call]:
    """Calls of the operator: by the function's name, or as torch.ops.lib.op."""
    parent = ctx.symbols.parent.get(made)
    name = parent.name if isinstance(parent, ast.FunctionDef) else ""
    full = "torch.ops." + label.replace("::", ".")
    return [
        c
        for c in ctx.symbols.calls
        if (isinstance(c.func, ast.Name) and c.func.id == name)
        or f"{ctx.symbols.qual(c.func) or ''}.".startswith(f"{full}.")
    ]


def _casts_arguments(call: ast.Call) -> bool:
    """`op(x.to(w.dtype), w)`, `op(x.float(), w.float())`: whoever calls it sees to the dtypes."""
    return any(
        isinstance(a, ast.Call)
        and isinstance(a.func, ast.Attribute)
        and (a.func.attr in ("float", "type_as") or (a.func.attr == "to" and any(names_dtype(x) for x in a.args)))
        for a in call.args
    )


def _is_compiled(ctx: Context, function: ast.FunctionDef) -> bool:
    return any(isinstance(n, ast.Call) and is_extension(ctx, n) for n in walk(function))


def _is_library(ctx: Context, call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    return any(
        isinstance(ref.expr, ast.Call) and ctx.symbols.qual(ref.expr.func, ref.scope) == "torch.library.Library"
        for ref in ctx.symbols.resolve(call.func.value, ctx.symbols.scope(call))
    )

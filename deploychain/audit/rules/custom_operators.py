"""Operators that are registered with torch.library, and whether autocast knows of them."""

# ruff: noqa: E501  (messages are one piece of text)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted, keyword, last_name
from deploychain.audit.context import NOTE, WARNING, Context
from deploychain.audit.finding import Finding, Severity
from deploychain.audit.rules.compiled_code import (
    ASKS_AUTOCAST,
    autocast_is_off,
    autocast_is_used,
    is_extension,
    names_dtype,
    sees_to_dtypes,
)
from deploychain.audit.tree import walk

_MAKES = frozenset({"torch.library.custom_op", "torch.library.triton_op"})


_AMP = re.compile(
    r"custom_(fwd|bwd)|GradScaler|Accelerator\(|mixed_precision\s*=|\b(bf|fp)16\s*=\s*True|precision[\"']?\s*[=:]\s*[\"']?(bf)?16"
)


# Tensors that hold integers by their name: autocast leaves these alone.
INTEGERS = re.compile(
    r"(^|_)(packed|q_?weights?|b_q_weight|q?zeros|perm|idx|ind(ex|ices)|coors|offsets?|counts?|(seq_?)?lens?|lengths?|ids?|slots?|tables?|labels?|"
    r"targets?|experts?|seeds?|mask|cu_seqlens\w*|positions?|mapping|rows?|starts?|ends?|lo|hi)(_|\d|$)",
    re.IGNORECASE,
)
# Tensors that stay float32 under autocast, next to its float16 activations.
_PARAMETERS = re.compile(
    r"weight|bias|gamma|beta|affine|embed|codebook|filter|kernel|param|(^|_)([wb]\d*|scales?|[AD]|coeff?s?|knots|grid)(_|$)"
)
_OF_SCHEMA = re.compile(r"Tensor(?:\([^)]*\))?\??(?:\[\])?\??\s+(\w+)")
_BACKWARD = re.compile(r"backward|(^|_)bwd(_|$)|(^|_)[wd]?grad(_|$)")


def severity(ctx: Context) -> Severity:
    """A note where the file neither trains nor turns autocast on: whether anything runs under it is not seen here."""
    trains = ".backward(" in ctx.text and ".step(" in ctx.text
    return WARNING if trains or ctx.says(_AMP) or autocast_is_used(ctx) else NOTE


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
        label, names = _full_name(ctx, call, found[0]), found[1]
        level, tensors = severity(ctx), len(names)
        if level is NOTE and not any(_PARAMETERS.search(name) for name in names):
            continue  # activations come alike, and operators of geometry and rendering see none
        if label.startswith("aten::"):
            continue  # torch's own, declared again
        short = label.rpartition("::")[2]
        sites = _sites(ctx, call, label)
        if short in registered or (sites and all(_seen_to(ctx, c) for c in sites)):
            continue
        yield ctx.finding(
            "R13", call, level,
            f"custom operator {label} takes {tensors} tensor{'s' if tensors > 1 else ''} and has no autocast rule: under autocast its "
            f"kernel gets {'the dtypes as they come, float16 activations next to float32 weights' if tensors > 1 else 'float16 activations'}",
            _registration(label),
        )  # fmt: skip


def _full_name(ctx: Context, call: ast.Call, label: str) -> str:
    """With the namespace of the library that defines it."""
    if "::" in label or not isinstance(call.func, ast.Attribute) or call.func.attr != "define":
        return label
    for ref in ctx.symbols.resolve(call.func.value, ctx.symbols.scope(call)):
        space = ctx.symbols.const(ref.expr.args[0], ref.scope) if isinstance(ref.expr, ast.Call) else None
        if isinstance(space, str):
            return f"{space}::{label}"
    return label


def _registration(label: str) -> str:
    """register_autocast wants "namespace::name"; where that is put together at run time the operator's own method."""
    if "::" in label:
        return f'torch.library.register_autocast("{label}", "cuda", torch.float32)'
    return f'{label}.register_autocast("cuda", torch.float32)'


def _seen_to(ctx: Context, site: ast.Call) -> bool:
    """Whoever calls the operator sees to the dtypes, has autocast off, or is part of a backward pass."""
    if autocast_is_off(ctx, site) or _casts_arguments(site):
        return True
    function = ctx.symbols.scope(site)
    if isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef):
        given = {dotted(n) for a in site.args for n in walk(a) if isinstance(n, ast.Name | ast.Attribute)}
        for node in walk(function.node):
            if isinstance(node, ast.Call) and last_name(node.func) in ASKS_AUTOCAST:
                return True
            if isinstance(node, ast.Attribute) and node.attr == "dtype" and dotted(node.value) in given:
                return True
    return _in_backward(ctx, function)


def _in_backward(ctx: Context, function: Scope, depth: int = 4) -> bool:
    """A backward pass, where autocast is off: a function that is registered as one, inside one, or called by those alone."""
    around: Scope | None = function
    while around is not None and isinstance(around.node, ast.FunctionDef | ast.Lambda):
        if _BACKWARD.search(around.name.lower()) or around in _registered_backward(ctx):
            return True
        around = around.parent
    sites = ctx.symbols.call_sites(function) if depth else []
    return bool(sites) and all(_in_backward(ctx, ctx.symbols.scope(s), depth - 1) for s in sites)


def _registered_backward(ctx: Context) -> list[Scope]:
    """`op.register_autograd(f, setup_context=g)`, `torch.library.register_autograd("lib::op", f)`"""
    given = [(a, scope) for call, scope in ctx.calls_named("register_autograd") for a in call.args[:2]]
    found = [ctx.symbols.local_function(a, scope) for a, scope in given if isinstance(a, ast.Name)]
    return [f for f in found if f is not None]


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


def _of_function(ctx: Context, call: ast.Call, scope: Scope) -> tuple[str, list[str]] | None:
    """`@custom_op("lib::f", mutates_args=())` on a function, or `custom_op("lib::f", f, mutates_args=())`."""
    parent = ctx.symbols.parent.get(call)
    node: ast.AST | None = parent if isinstance(parent, ast.FunctionDef) else None
    if node is None and len(call.args) > 1:
        function = ctx.symbols.local_function(call.args[1], scope)
        node = function.node if function is not None else None
    label = ctx.symbols.const(call.args[0] if call.args else keyword(call, "name"), scope)
    if not isinstance(node, ast.FunctionDef):
        return None
    if _BACKWARD.search(node.name.lower()) or sees_to_dtypes(ctx, node):
        return None  # autocast is off in the backward pass
    if getattr(keyword(call, "mutates_args"), "elts", None):
        return None  # what is written to can't be cast on the way in, with autocast or without
    given = ctx.symbols.const(keyword(call, "schema"), scope)
    if isinstance(given, str):
        tensors = _in_schema(given)
    else:
        every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        counted = used_as_integers(node)
        tensors = [
            a.arg
            for a in every
            if a.annotation is not None
            and "Tensor" in ast.unparse(a.annotation)
            and not INTEGERS.search(a.arg)
            and a.arg not in counted
        ]
    if len(tensors) < 2 and not (tensors and _is_compiled(ctx, node)):
        return None
    return (label if isinstance(label, str) else node.name), tensors


def used_as_integers(function: ast.FunctionDef) -> set[str]:
    """The names whose values are indices or counts: `x[index]`, `x.index_select(0, index)`, `int(routing[0])`."""
    found: set[str] = set()
    for node in walk(function):
        given: list[ast.expr] = []
        if isinstance(node, ast.Subscript):
            given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        elif isinstance(node, ast.Call) and last_name(node.func) in ("int", "range", "repeat_interleave", "embedding"):
            given = node.args
        elif isinstance(node, ast.Call) and last_name(node.func) in _INDEXING:
            given = [*node.args, *(k.value for k in node.keywords if k.arg == "index")]
            given = [a for a in given[1:2] if isinstance(a, ast.Name)] + [a for a in given[-1:] if node.keywords]
        for value in given:
            while isinstance(value, ast.Subscript):
                value = value.value
            if isinstance(value, ast.Name):
                found.add(value.id)
    return found


_INDEXING = frozenset({"index_select", "index_add", "index_add_", "gather", "scatter_add", "scatter_add_", "scatter"})


def _in_schema(schema: str) -> list[str]:
    return [name for name in _OF_SCHEMA.findall(schema.split("->")[0]) if not INTEGERS.search(name)]


def _of_schema(label: object, schema: object) -> tuple[str, list[str]] | None:
    if not isinstance(schema, str) or not isinstance(label, str) or "!" in schema:  # out= is never cast
        return None
    tensors = _in_schema(schema)
    name = label.split("(")[0].strip()
    return (name, tensors) if len(tensors) >= 2 and not _BACKWARD.search(name.lower()) else None


def _sites(ctx: Context, made: ast.Call, label: str) -> list[ast.Call]:
    """Calls of the operator: by the function's name, or as torch.ops.lib.op."""
    parent = ctx.symbols.parent.get(made)
    name = parent.name if isinstance(parent, ast.FunctionDef) else ""
    full = "torch.ops." + label.replace("::", ".")
    found = [
        c
        for c in ctx.symbols.calls
        if (isinstance(c.func, ast.Name) and c.func.id == name)
        or f"{ctx.symbols.qual(c.func) or ''}.".startswith(f"{full}.")
    ]
    for node in ctx.symbols.nodes(ast.Attribute):  # handed to a function that calls it
        above = ctx.symbols.parent.get(node)
        if isinstance(above, ast.Call) and node in above.args and ctx.symbols.qual(node) == full:
            found.append(above)
    return found


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

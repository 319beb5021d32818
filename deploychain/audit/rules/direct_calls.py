"""Modules that hand activations and parameters to compiled code themselves, with no autograd.Function in between."""

# ruff: noqa: E501  (messages are one piece of text)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, argument_for, dotted, last_name
from deploychain.audit.context import WARNING, Context
from deploychain.audit.finding import Finding
from deploychain.audit.rules.compiled_code import autocast_is_off, autocast_is_used, casts, is_extension

_KEEPS = frozenset({"contiguous", "t", "view", "reshape", "cuda", "detach", "transpose", "flatten", "unsqueeze"})
_MARKS = ("cpp_extension", "_C", "_ext", "_cuda", "_kernel", "CDLL", "get_kernel", "load_kernel")


def direct_calls(ctx: Context) -> Iterator[Finding]:
    """`_ext.fwd(x, self.weight)` in a forward that the file runs under autocast."""
    if "autocast" not in ctx.text or not any(mark in ctx.text for mark in _MARKS) or not autocast_is_used(ctx):
        return
    for call in ctx.symbols.calls:
        if len(call.args) < 2 or not isinstance(call.func, ast.Attribute):
            continue
        name = ctx.symbols.qual(call.func) or ""
        if name.startswith("torch.") or not is_extension(ctx, call):  # torch.ops may have a rule in C++
            continue
        scope = ctx.symbols.scope(call)
        if not isinstance(scope.node, ast.FunctionDef) or _knows(ctx, call, scope):
            continue
        weight = next((w for a in call.args if (w := _parameter(ctx, a, scope)) is not None), None)
        if weight is None:
            continue
        yield ctx.finding(
            "R13", call, WARNING,
            f"`{ctx.str(call.func)}` is compiled code that autocast knows nothing of: under autocast it gets float16 activations next "
            f"to the float32 parameter `{weight}`, and raises or misreads memory",
            'with torch.autocast("cuda", enabled=False):\n    y = ext.forward(x.float(), self.weight)  # or an operator with '
            "torch.library.register_autocast",
        )  # fmt: skip


def _knows(ctx: Context, call: ast.Call, scope: Scope) -> bool:
    """The function, or the one place that runs it, casts or turns autocast off."""
    if autocast_is_off(ctx, call) or _tells(ctx, scope):
        return True
    sites = ctx.symbols.call_sites(scope)
    return any(autocast_is_off(ctx, c) or _tells(ctx, ctx.symbols.scope(c)) for c in sites)


def _tells(ctx: Context, scope: Scope) -> bool:
    node = scope.node
    return isinstance(node, ast.FunctionDef) and (
        casts(node) or any("autocast" in (t := ctx.str(d)) or "custom_" in t for d in node.decorator_list)
    )


def _parameter(ctx: Context, expr: ast.expr, scope: Scope, depth: int = 3) -> str | None:
    """The nn.Parameter of the module that an argument is, also through the function that passes it on."""
    while isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and expr.func.attr in _KEEPS:
        expr = expr.func.value
    text = dotted(expr)
    if text is None or depth <= 0:
        return None
    if text.startswith("self."):
        cls = ctx.symbols.class_of(scope)
        if cls is None or not ctx.is_module_class(cls):
            return None
        made = [b.value for home in ctx.symbols.bases(cls) for b in home.bindings.get(text, [])]
        if any(isinstance(v, ast.Call) and last_name(v.func) == "Parameter" for v in made):
            return text
        return text if not made and text in ("self.weight", "self.bias") else None
    for site in ctx.symbols.call_sites(scope)[:8] if text in scope.parameters else ():
        given = argument_for(site, scope, text)
        found = _parameter(ctx, given, ctx.symbols.scope(site), depth - 1) if given is not None else None
        if found is not None:
            return found
    return None

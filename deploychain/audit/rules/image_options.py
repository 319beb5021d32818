"""What happens only where an option asks for it that is off by default."""

from __future__ import annotations

import ast

from deploychain.audit.astnames import Scope, argument_for, dotted, last_name
from deploychain.audit.context import Context
from deploychain.audit.images import parameter_default


def only_by_option(ctx: Context, half: ast.AST) -> bool:
    """`if fp16: x = x.half()`, `torch.float16 if fp16 else torch.float32`, with `fp16=False` in the signature."""
    if behind_option(ctx, half):
        return True
    if not isinstance(half, ast.Call) or last_name(half.func) == "half":
        return False
    scope = ctx.symbols.scope(half)
    given = [*half.args, *(k.value for k in half.keywords if k.arg == "dtype")]
    made = [ref.expr for expr in given for ref in ctx.symbols.resolve(expr, scope)]
    halves = [e for e in made if ctx.symbols.qual(e) in ("torch.float16", "torch.half")]
    return bool(halves) and all(behind_option(ctx, e) for e in halves)


def behind_option(ctx: Context, node: ast.AST) -> bool:
    """In the branch of an `if` whose condition no call of the file makes true: `if check:` with `check=False`."""
    parent = ctx.symbols.parent.get(node)
    while parent is not None and not isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        if isinstance(parent, ast.If | ast.IfExp):
            body = parent.body if isinstance(parent.body, list) else [parent.body]
            if node in body and is_off(ctx, parent.test, ctx.symbols.scope(parent)):
                return True
        node, parent = parent, ctx.symbols.parent.get(parent)
    return False


def is_off(ctx: Context, test: ast.expr, scope: Scope) -> bool:
    """A parameter, or an attribute made of one, whose default is False and that no call of the file turns on."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(is_off(ctx, value, scope) for value in test.values)
    if isinstance(test, ast.Name | ast.Attribute) and ctx.symbols.const(test, scope) is False:
        return True
    if isinstance(test, ast.Attribute):  # self.fp16 = fp16
        kept = [b for b in ctx.symbols.bindings(dotted(test) or "", scope) if b.value is not None]
        return bool(kept) and all(isinstance(b.value, ast.Name) and is_off(ctx, b.value, b.scope) for b in kept)
    function = ctx.symbols.parameter_scope(test.id, scope) if isinstance(test, ast.Name) else None
    if function is None or not isinstance(test, ast.Name):
        return False
    default = parameter_default(function, test.id)
    if not isinstance(default, ast.Constant) or default.value not in (False, None):
        return False
    sites = [*ctx.symbols.call_sites(function)]
    if function.name == "__init__" and function.owner is not None:
        sites += ctx.symbols.constructions(function.owner)
    given = [argument_for(site, function, test.id) for site in sites]
    return not any(isinstance(g, ast.Constant) and g.value is True for g in given)

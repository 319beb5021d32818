"""Attention scores that are scaled after the product of queries and keys (part of R11)."""

# ruff: noqa: E501  (messages are one piece of text)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Ref, Scope, dotted, last_name, returns
from deploychain.audit.bounds import written_float32
from deploychain.audit.context import NOTE, Context
from deploychain.audit.finding import Finding
from deploychain.audit.formulas import latest
from deploychain.audit.tree import walk

# Attention modules are written for any dtype: the note is for files that show half precision or training.
_HALF_SIGNS = ("autocast", "GradScaler", ".half(", "torch.float16", "fp16", "16-mixed", ".backward(")
_PRODUCTS = frozenset({"matmul", "bmm", "mm", "einsum"})
_QUERY = re.compile(r"(^|_)(q|qs|qq|xq|query|queries|theta)(_|\d|$)", re.IGNORECASE)
_KEY = re.compile(r"(^|_)(k|ks|kk|xk|kt|key|keys|phi)(_|\d|$)", re.IGNORECASE)
_SCALE_NAMES = frozenset(
    {"scale", "scaling", "softmax_scale", "sqrt_d", "temper", "norm_factor", "inv_sqrt_d", "norm_fact"}
)
_DIVISORS = frozenset({"scale_factor", "temperature", "temp", "sqrt_dk", "tau"})
_SOFTMAX = frozenset({"softmax", "Softmax", "attend", "log_softmax", "attn_softmax", "gumbel_softmax"})
_SCALERS = {"mul": ast.Mult, "mul_": ast.Mult, "div": ast.Div, "div_": ast.Div, "true_divide": ast.Div}


def check(ctx: Context) -> Iterator[Finding]:
    """(q @ k.T) / sqrt(d), then softmax: the product overflows before it is scaled."""
    if not any(sign in ctx.text for sign in _HALF_SIGNS) or _only_bf16(ctx):
        return
    for node in ctx.symbols.nodes(ast.BinOp, ast.Call, ast.AugAssign):
        scope = ctx.symbols.scope(node)
        for product, scale, divides in _scalings(ctx, node, scope):
            made = _product(ctx, product, scope)
            if made is None or not _looks_scale(ctx, scale, scope, divides):
                continue
            if _followed_by_softmax(ctx, node, scope) and not any(_tamed(ctx, q, scope) for q in made):
                yield _finding(ctx, node, *made)
                break


def _finding(ctx: Context, node: ast.AST, left: ast.expr, right: ast.expr) -> Finding:
    shown = ctx.str(left)
    return ctx.finding(
        "R11", node, NOTE,
        f"the product of `{shown}` and `{ctx.str(right)}` is scaled only afterwards: in float16 it is inf once q.k passes 65504 "
        "(head_dim 64 and values around 32), while the scaled value would fit",
        f"scale the query first: ({shown} * scale) @ ..., or torch.nn.functional.scaled_dot_product_attention(q, k, v)",
    )  # fmt: skip


def _scalings(ctx: Context, node: ast.AST, scope: Scope) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """(product, scale, it divides) in `p * s`, `s * p`, `p / s`, `p.mul(s)`, `p *= s`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Mult):
        divides = isinstance(node.op, ast.Div)
        yield node.left, node.right, divides
        if not divides:
            yield node.right, node.left, False
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div | ast.Mult):
        before = latest_before(ctx, node.target, node.lineno, scope)
        if before is not None:
            yield before, node.value, isinstance(node.op, ast.Div)
    elif isinstance(node, ast.Call) and last_name(node.func) in _SCALERS and isinstance(node.func, ast.Attribute):
        divides = _SCALERS[node.func.attr] is ast.Div
        full = ctx.symbols.qual(node.func, scope)
        if full is None and len(node.args) == 1:
            yield node.func.value, node.args[0], divides
        elif full is not None and full.startswith("torch.") and len(node.args) == 2:
            yield node.args[0], node.args[1], divides


def latest_before(ctx: Context, target: ast.expr, line: int, scope: Scope) -> ast.expr | None:
    """What a name was given last before a line."""
    text = dotted(target)
    made = [
        b.value for b in (ctx.symbols.bindings(text, scope) if text else ())
        if b.value is not None and not b.loop and b.place is None and b.scope is scope and b.value.lineno < line
    ]  # fmt: skip
    return max(made, key=lambda v: v.lineno) if made else None


def _product(ctx: Context, expr: ast.expr, scope: Scope, depth: int = 1) -> tuple[ast.expr, ast.expr] | None:
    e = latest(ctx, expr, scope).expr
    function = ctx.symbols.local_function(e.func, scope) if isinstance(e, ast.Call) else None
    values = returns(function) if function is not None else []
    if function is not None and function is not scope and len(values) == 1:  # `self.scores(q, k) * self.scale`
        return _product(ctx, values[0], function, depth - 1) if depth else None
    pair: tuple[ast.expr, ast.expr] | None = None
    if isinstance(e, ast.BinOp) and isinstance(e.op, ast.MatMult):
        pair = e.left, e.right
    elif isinstance(e, ast.Call) and last_name(e.func) in _PRODUCTS:
        full = ctx.symbols.qual(e.func, scope)
        operands = e.args[1:] if last_name(e.func) == "einsum" else e.args
        if full is not None and full.startswith("torch.") and len(operands) == 2:
            pair = operands[0], operands[1]
        elif full is None and isinstance(e.func, ast.Attribute) and len(operands) == 1:
            pair = e.func.value, operands[0]
        elif full is not None and last_name(e.func) == "einsum" and len(operands) == 2:
            pair = operands[0], operands[1]
    if pair is None:
        return None
    return pair if _transposed(pair[1]) or _query_and_key(pair) else None


def _query_and_key(pair: tuple[ast.expr, ast.expr]) -> bool:
    left, right = (_base_name(e) for e in pair)
    return bool((_QUERY.search(left) and _KEY.search(right)) or (_KEY.search(left) and _QUERY.search(right)))


def _base_name(expr: ast.expr) -> str:
    """q of `q.transpose(-2, -1)`, `self.q(x)`, `q[:, 0]`."""
    while True:
        if isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and not expr.args:
            expr = expr.func.value
        elif isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute):
            if _QUERY.search(expr.func.attr) or _KEY.search(expr.func.attr):
                return expr.func.attr
            expr = expr.func.value
        elif isinstance(expr, ast.Subscript):
            expr = expr.value
        else:
            return last_name(expr)


def _transposed(expr: ast.expr) -> bool:
    if isinstance(expr, ast.Call) and last_name(expr.func) in ("transpose", "permute", "t", "swapaxes", "contiguous"):
        return True
    return isinstance(expr, ast.Attribute) and expr.attr in ("T", "mT")


def _looks_scale(ctx: Context, expr: ast.expr, scope: Scope, divides: bool) -> bool:
    for ref in ctx.symbols.resolve(expr, scope):
        for node in walk(ref.expr):
            if isinstance(node, ast.Call) and last_name(node.func) in ("sqrt", "rsqrt"):
                return True
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
                power = ctx.symbols.const(node.right, ref.scope)
                if power in (0.5, -0.5):
                    return True
    name = last_name(expr)
    return name in _SCALE_NAMES or (divides and name in _DIVISORS)


def _followed_by_softmax(ctx: Context, node: ast.AST, scope: Scope, depth: int = 2) -> bool:
    found = [c for c in ctx.symbols.calls if last_name(c.func) in _SOFTMAX and ctx.symbols.scope(c) is scope]
    if found:
        return found[0].lineno >= getattr(node, "lineno", 0)
    # scores that a method returns: the caller takes the softmax of them
    gives = any(_is_part(ctx, node, value, scope) for value in returns(scope))
    for site in ctx.symbols.call_sites(scope)[:8] if gives and depth else ():
        if _followed_by_softmax(ctx, site, ctx.symbols.scope(site), depth - 1):
            return True
    return False


def _is_part(ctx: Context, node: ast.AST, value: ast.expr, scope: Scope) -> bool:
    """Of the value itself: `x / scale + bias`, not of an argument of another module."""
    parts: list[ast.expr] = [value]
    followed: set[str] = set()
    while parts:
        part = parts.pop()
        while isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part is not node:
            part = part.func.value
        if part is node:
            return True
        if isinstance(part, ast.BinOp):
            parts += [part.left, part.right]
        elif isinstance(part, ast.IfExp):
            parts += [part.body, part.orelse]
        elif isinstance(part, ast.Name) and part.id not in followed:
            followed.add(part.id)
            if isinstance(node, ast.AugAssign) and dotted(node.target) == part.id:
                return True
            bound = ctx.symbols.bindings(part.id, scope)
            parts += [b.value for b in bound if b.value is not None and b.scope is scope and not b.loop]
    return False


def _tamed(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """Normalised, scaled or in float32 before the product."""
    return any(_tames(ctx, ref) for ref in ctx.symbols.resolve(expr, scope)) or written_float32(ctx, expr, scope)


def _tames(ctx: Context, ref: Ref) -> bool:
    for node in walk(ref.expr):
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if "norm" in name.lower() or name in ("float", "double"):
                return True
            for made in ctx.symbols.resolve(node.func, ref.scope) if isinstance(node.func, ast.Attribute) else ():
                if isinstance(made.expr, ast.Call) and "norm" in last_name(made.expr.func).lower():
                    return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
            return True
        if isinstance(node, ast.Attribute) and node.attr in ("float32", "float64"):
            return True
    return False


def _only_bf16(ctx: Context) -> bool:
    return "bfloat16" in ctx.text and "float16" not in ctx.text.replace("bfloat16", "") and ".half(" not in ctx.text

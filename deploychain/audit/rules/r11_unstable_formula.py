"""R11: formulas that overflow although torch has a stable function for them."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, last_name
from deploychain.audit.bounds import bounded, fixed, log_probability
from deploychain.audit.context import Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.formulas import exponents, latest, operand, reduces, through
from deploychain.audit.rules import attention_scale, logarithms
from deploychain.audit.rules.half_shown import overflow, severity
from deploychain.audit.tree import walk


def check(ctx: Context) -> Iterator[Finding]:
    yield from attention_scale.check(ctx)
    if "exp" not in ctx.text and "log" not in ctx.text:
        return
    for node in ctx.symbols.nodes(ast.BinOp, ast.Call, ast.AugAssign):
        scope = ctx.symbols.scope(node)
        quotient = _quotient(ctx, node, scope)
        if quotient is not None:
            yield from _softmax(ctx, node, scope, *quotient)
        elif isinstance(node, ast.Call):
            yield from logarithms.check(ctx, node, scope)
            yield from _normalised(ctx, node, scope)


# -- quotients of exponentials ---------------------------------------------------------------------------------------


def _quotient(ctx: Context, node: ast.AST, scope: Scope) -> tuple[ast.expr, ast.expr] | None:
    """(numerator, denominator) of `a / b`, `a /= b`, `a.div(b)`, `torch.div(a, b)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return node.left, node.right
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
        before = attention_scale.latest_before(ctx, node.target, node.lineno, scope)
        again = [n for n in ctx.symbols.nodes(ast.AugAssign) if ast.unparse(n.target) == ast.unparse(node.target)]
        once = sum(isinstance(n.op, ast.Div) and ctx.symbols.scope(n) is scope for n in again) == 1
        return (before, node.value) if before is not None and once else None  # (Sinkhorn divides by rows and columns)
    if isinstance(node, ast.Call) and last_name(node.func) in ("div", "div_", "true_divide", "divide"):
        top = operand(ctx, node, scope, "div", "div_", "true_divide", "divide")
        if top is not None and node.args:
            return top, node.args[-1] if len(node.args) > 1 or top is not node.args[0] else top
    return None


def _softmax(ctx: Context, node: ast.AST, scope: Scope, top: ast.expr, below: ast.expr) -> Iterator[Finding]:
    """exp(x) / exp(x).sum(), exp(a) / (exp(a) + exp(b)), (e^x - e^-x) / (e^x + e^-x): inf / inf"""
    over = [x for x in exponents(ctx, top, scope) if not bounded(ctx, x, scope) and not _logarithm(ctx, x, scope)]
    if not over or not reduces(ctx, below, scope):
        return
    under = [x for x in exponents(ctx, below, scope) if not bounded(ctx, x, scope)]
    if not under or not _related(ctx, over, under, scope) or fixed(ctx, over[0], scope):
        return
    kind = _kind(ctx, top, below, scope)
    if kind is None:
        return
    x = ctx.str(over[0])
    yield ctx.finding(
        "R11", node, severity(ctx, over[0], scope),
        f"hand-written {kind} of `{x}`: exp {overflow(ctx, over[0], scope)}, and inf/inf is NaN",
        f"torch.{kind}({x}{', dim=-1' if kind == 'softmax' else ''})",
    )  # fmt: skip


def _kind(ctx: Context, top: ast.expr, below: ast.expr, scope: Scope) -> str | None:
    """softmax, or sigmoid and tanh written out; None where something else than exponentials is added to one."""
    made = through(ctx, below, scope)
    numerator = through(ctx, top, scope)
    if not (isinstance(made, ast.BinOp) and isinstance(made.op, ast.Add)):
        return "softmax"
    if isinstance(numerator, ast.BinOp) and isinstance(numerator.op, ast.Sub):
        pair = [x for side in (made.left, made.right) for x in exponents(ctx, side, scope)]
        opposite = len(pair) == 2 and any(isinstance(latest(ctx, x, scope).expr, ast.UnaryOp) for x in pair)
        return "tanh" if opposite else "softmax"
    if reduces(ctx, made.left, scope) or reduces(ctx, made.right, scope):
        return "softmax"
    others = [side for side in (made.left, made.right) if not exponents(ctx, side, scope)]
    if not others:
        return "softmax"
    number = ctx.symbols.const(others[0], scope)
    if isinstance(number, int | float):
        return "sigmoid" if number == 1 else None
    named = isinstance(others[0], ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return "softmax" if named and _SUMS.search(ctx.str(others[0]).lower()) else None


def _logarithm(ctx: Context, exponent: ast.expr, scope: Scope) -> bool:
    """exp(log_dt), exp(self.logvar), exp(logprobs): a quantity that is kept as its logarithm, and no score."""
    name = last_name(exponent.operand if isinstance(exponent, ast.UnaryOp) else exponent)
    kept = name.startswith(("log", "ln_")) and not name.startswith("logit")
    return kept or log_probability(ctx, exponent, scope)


def _related(ctx: Context, over: list[ast.expr], under: list[ast.expr], scope: Scope) -> bool:
    """The same exponent above and below the line, elements of it, or the one is a part of the sum."""
    above = {ast.unparse(x) for x in over} | {ast.unparse(through(ctx, x, scope)) for x in over}
    return any(ast.unparse(x) in above or ast.unparse(through(ctx, x, scope)) in above for x in under) or any(
        _names(x) & _names(y) for x in over for y in under
    )


def _names(expr: ast.expr) -> set[str]:
    return {n.id for n in walk(expr) if isinstance(n, ast.Name)} - {"torch", "self", "F", "math", "np"}


def _normalised(ctx: Context, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    """F.normalize(exp(x), p=1) is a softmax."""
    inside = operand(ctx, call, scope, "normalize") if last_name(call.func) == "normalize" else None
    power = next((k.value for k in call.keywords if k.arg == "p"), call.args[1] if len(call.args) > 1 else None)
    if inside is None or ctx.symbols.const(power, scope) not in (1, 1.0):
        return
    exp = operand(ctx, through(ctx, inside, scope), scope, "exp", "exp_")
    if exp is not None and not bounded(ctx, exp, scope) and not fixed(ctx, exp, scope):
        x = ctx.str(exp)
        yield ctx.finding(
            "R11", call, severity(ctx, exp, scope),
            f"hand-written softmax of `{x}`: exp {overflow(ctx, exp, scope)}, and inf/inf is NaN", f"torch.softmax({x}, dim=-1)",
        )  # fmt: skip


_SUMS = re.compile(r"neg|sum|denom|exp|total|others|rest")


RULE = Rule(
    id="R11",
    name="unstable-formula",
    title="A hand-written formula overflows where torch has a stable function",
    how="code, run",
    belief="A hand-written softmax underflows because of the division; dividing by sqrt(head_dim) loses three digits.",
    truth=(
        "exp overflows: from x > 11.09 in float16, x > 88.72 in float32 (CUDA autocast runs exp in float32, so NaN from 89). "
        "F.softmax is fine at 90. log(1 - exp(x)) of a log-probability cannot overflow: it is -inf where exp(x) is rounded to 1. "
        "A file that shows no float16 gets a note only, and so does a value that the code makes float32: the overflow then takes "
        "float32's range. Constants of a constructor are no matter. Dividing by sqrt(head_dim) is one rounding; the hazard is the overflow before it "
        "(q.k = 73728 is inf)."
    ),
    experiment="Hand-written and built-in softmax at 12 and 90 in float16 and float32; q.k before and after scaling.",
    bad="w = torch.exp(s) / torch.exp(s).sum(-1, keepdim=True)",
    good="w = torch.softmax(s, dim=-1)",
    check=check,
    trigger=r"exp_?\(|log(2|10|1p)?_?\(|\bbackward\(|autocast|GradScaler|\.half\(|float16|fp16",
)

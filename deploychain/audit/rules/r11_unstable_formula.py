"""R11: formulas that overflow although torch has a stable function for them."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, last_name
from deploychain.audit.context import WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.formulas import (
    bounded,
    exponents,
    latest,
    never_positive,
    operand,
    probability,
    reduces,
    through,
)
from deploychain.audit.rules import attention_scale
from deploychain.audit.tree import walk
from deploychain.audit.values import words

_LOGS = words("log log_ log2 log10")
_CLAMPS = words("clamp clip clamp_ clamp_max clamp_max_ clip_ minimum min")


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
            yield from _log(ctx, node, scope)


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
    over = [x for x in exponents(ctx, top, scope) if not bounded(ctx, x, scope) and not _logarithm(x)]
    if not over or not reduces(ctx, below, scope):
        return
    under = [x for x in exponents(ctx, below, scope) if not bounded(ctx, x, scope)]
    if not under or not _related(ctx, over, under, scope):
        return
    x = ctx.str(over[0])
    yield ctx.finding(
        "R11", node, WARNING,
        f"hand-written softmax of `{x}`: exp overflows from {x} > 11.1 in float16 and > 88.7 in float32 (CUDA autocast runs exp in "
        "float32), and inf/inf is NaN",
        f"torch.softmax({x}, dim=-1)",
    )  # fmt: skip


def _logarithm(exponent: ast.expr) -> bool:
    """exp(log_dt), exp(self.logvar): a quantity that is kept as its logarithm, and no score."""
    name = last_name(exponent.operand if isinstance(exponent, ast.UnaryOp) else exponent)
    return name.startswith(("log", "ln_")) and not name.startswith("logit")


def _related(ctx: Context, over: list[ast.expr], under: list[ast.expr], scope: Scope) -> bool:
    """The same exponent above and below the line, elements of it, or the one is a part of the sum."""
    above = {ast.unparse(x) for x in over} | {ast.unparse(through(ctx, x, scope)) for x in over}
    return any(ast.unparse(x) in above or ast.unparse(through(ctx, x, scope)) in above for x in under) or any(
        _names(x) & _names(y) for x in over for y in under
    )


def _names(expr: ast.expr) -> set[str]:
    return {n.id for n in walk(expr) if isinstance(n, ast.Name)} - {"torch", "self", "F", "math", "np"}


# -- logarithms ------------------------------------------------------------------------------------------------------


def _log(ctx: Context, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    name = last_name(call.func)
    if name == "normalize":
        yield from _normalised(ctx, call, scope)
    if name in ("log1p", "log1p_"):
        yield from _log1p(ctx, call, scope)
        return
    inside = operand(ctx, call, scope, *_LOGS) if name in _LOGS else None
    if inside is None:
        return
    made = probability(ctx, inside, scope)
    if made is not None:
        yield _log_of(ctx, call, *made)
        return
    found = [x for x in exponents(ctx, inside, scope) if not never_positive(ctx, x, scope)]
    top = latest(ctx, inside, scope).expr
    less = isinstance(top, ast.BinOp) and isinstance(top.op, ast.Sub)  # log(exp(x) - 1), the inverse of softplus
    if found and (less or reduces(ctx, inside, scope)) and not _is_quotient(ctx, inside, scope):
        added = isinstance(top, ast.BinOp)
        loose = [x for x in found if not bounded(ctx, x, scope) or (added and _plain_minus(ctx, x, scope))]
        if loose and not (added and _chosen(ctx, call)):
            if less and len(found) == 1:
                yield _inverse_softplus(ctx, call, loose[0])
            else:
                yield _overflow(ctx, call, loose[0], softplus=added and len(found) == 1)
        return
    if _one_minus_probability(ctx, latest(ctx, inside, scope).expr, scope):
        yield _log_one_minus(ctx, call)


def _plain_minus(ctx: Context, x: ast.expr, scope: Scope) -> bool:
    """`exp(-score)` of a value that may have either sign."""
    return isinstance(latest(ctx, x, scope).expr, ast.UnaryOp) and not any(
        isinstance(n, ast.Call) and last_name(n.func) in ("clamp", "clamp_", "clip", "tanh", "normalize", "sigmoid")
        for n in walk(x)
    )


def _chosen(ctx: Context, call: ast.Call) -> bool:
    """torch.where(x > 20, x, log(1 + exp(x)))"""
    node: ast.AST | None = call
    while isinstance(node, ast.expr):
        if isinstance(node, ast.Call) and last_name(node.func) == "where":
            return True
        node = ctx.symbols.parent.get(node)
    return False


def _is_quotient(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """log(exp(a) / sum): told at the quotient."""
    made = latest(ctx, expr, scope).expr
    return isinstance(made, ast.BinOp) and isinstance(made.op, ast.Div) and bool(exponents(ctx, made.left, scope))


def _log1p(ctx: Context, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    inside = operand(ctx, call, scope, "log1p", "log1p_")
    if inside is None:
        return
    made = latest(ctx, inside, scope).expr
    exp = operand(ctx, made, scope, "exp", "exp_")
    if exp is not None and not never_positive(ctx, exp, scope) and not _chosen(ctx, call):
        if not bounded(ctx, exp, scope) or _plain_minus(ctx, exp, scope):
            yield _overflow(ctx, call, exp, softplus=True)
    elif isinstance(made, ast.UnaryOp) and isinstance(made.op, ast.USub) and probability(ctx, made.operand, scope):
        yield _log_one_minus(ctx, call)


def _normalised(ctx: Context, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    """F.normalize(exp(x), p=1) is a softmax."""
    inside = operand(ctx, call, scope, "normalize")
    power = next((k.value for k in call.keywords if k.arg == "p"), call.args[1] if len(call.args) > 1 else None)
    if inside is None or ctx.symbols.const(power, scope) not in (1, 1.0):
        return
    exp = operand(ctx, through(ctx, inside, scope), scope, "exp", "exp_")
    if exp is not None and not bounded(ctx, exp, scope):
        x = ctx.str(exp)
        yield ctx.finding(
            "R11", call, WARNING,
            f"hand-written softmax of `{x}`: exp overflows from {x} > 11.1 in float16 and > 88.7 in float32, and inf/inf is NaN",
            f"torch.softmax({x}, dim=-1)",
        )  # fmt: skip


def _log_of(ctx: Context, call: ast.Call, kind: str, of: ast.expr) -> Finding:
    x = ctx.str(of)
    if kind == "softmax":
        return ctx.finding(
            "R11", call, WARNING,
            "log of a softmax: a probability below 6e-8 (float16) or 1e-45 (float32) is 0 and its log -inf",
            f"torch.log_softmax({x}, dim=-1)",
        )  # fmt: skip
    return ctx.finding(
        "R11", call, WARNING,
        f"log of a sigmoid: sigmoid is 0 from {x} < -17 in float16 (-104 in float32), and the log is -inf",
        f"torch.nn.functional.logsigmoid({x})",
    )  # fmt: skip


def _inverse_softplus(ctx: Context, call: ast.Call, of: ast.expr) -> Finding:
    x = ctx.str(of)
    return ctx.finding(
        "R11", call, WARNING,
        f"log(exp({x}) - 1) overflows from {x} > 11.1 in float16 and > 88.7 in float32, and its gradient is NaN",
        f"y + torch.log(-torch.expm1(-y))  # with y = {x}",
    )  # fmt: skip


def _overflow(ctx: Context, call: ast.Call, of: ast.expr, softplus: bool) -> Finding:
    x = ctx.str(of)
    if softplus:
        return ctx.finding(
            "R11", call, WARNING,
            f"log(1 + exp({x})) overflows from {x} > 11.1 in float16 and > 88.7 in float32, and its gradient is NaN",
            f"torch.nn.functional.softplus({x})",
        )  # fmt: skip
    return ctx.finding(
        "R11", call, WARNING,
        f"log(sum(exp({x}))) overflows from {x} > 11.1 in float16 and > 88.7 in float32",
        f"torch.logsumexp({x}, dim=-1)",
    )  # fmt: skip


def _log_one_minus(ctx: Context, call: ast.Call) -> Finding:
    return ctx.finding(
        "R11", call, WARNING,
        f"`{ctx.str(call)}`: a probability above 0.9995 rounds to 1 in float16 (above 0.99999997 in float32), and log(0) "
        "is -inf",
        "binary_cross_entropy_with_logits(logits, target), or logsigmoid(-logits)",
    )  # fmt: skip


def _one_minus_probability(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    if not (isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Sub)):
        return False
    if ctx.symbols.const(expr.left, scope) not in (1, 1.0):
        return False
    right = expr.right
    if probability(ctx, right, scope) is not None:
        return True
    refs = ctx.symbols.resolve(right, scope)
    if any(isinstance(n, ast.Call) and last_name(n.func) in _CLAMPS for r in refs for n in walk(r.expr)):
        return False
    # hand-written binary cross-entropy on an argument: log(p) and log(1 - p) of the same p
    if not isinstance(right, ast.Name) or not any(isinstance(r.expr, ast.Name) for r in refs):
        return False
    if any(isinstance(b.value, (ast.Call, ast.BinOp)) for b in ctx.symbols.bindings(right.id, scope)):
        return False
    for other in ctx.symbols.calls:
        if ctx.symbols.scope(other) is scope and last_name(other.func) == "log":
            inside = operand(ctx, other, scope, "log")
            if isinstance(inside, ast.Name) and inside.id == right.id:
                return True
    return False


RULE = Rule(
    id="R11",
    name="unstable-formula",
    title="A hand-written formula overflows where torch has a stable function",
    how="code, run",
    belief="A hand-written softmax underflows because of the division; dividing by sqrt(head_dim) loses three digits.",
    truth=(
        "exp overflows: from x > 11.09 in float16, x > 88.72 in float32 (CUDA autocast runs exp in float32, so NaN from 89). "
        "F.softmax is fine at 90. Dividing by sqrt(head_dim) is one rounding; the hazard is the overflow before it "
        "(q.k = 73728 is inf)."
    ),
    experiment="Hand-written and built-in softmax at 12 and 90 in float16 and float32; q.k before and after scaling.",
    bad="w = torch.exp(s) / torch.exp(s).sum(-1, keepdim=True)",
    good="w = torch.softmax(s, dim=-1)",
    check=check,
    trigger=r"exp_?\(|log(2|10|1p)?_?\(|\bbackward\(|autocast|GradScaler|\.half\(|float16|fp16",
)

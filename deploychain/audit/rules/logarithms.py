"""Logarithms of hand-written sums of exponentials and of probabilities (part of R11)."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted, last_name
from deploychain.audit.bounds import bounded, fixed, log_probability, never_positive, plain_minus
from deploychain.audit.context import Context
from deploychain.audit.finding import Finding
from deploychain.audit.formulas import exponents, latest, operand, probability, reduces, through
from deploychain.audit.rules.half_shown import kind, overflow, severity
from deploychain.audit.tree import walk
from deploychain.audit.values import words

_LOGS = words("log log_ log2 log10")
_CLAMPS = words("clamp clip clamp_ clamp_max clamp_max_ clip_ minimum min")
_FLOORS = words("clamp clip clamp_ clamp_min clamp_min_ clip_ maximum max")
_FINITE = re.compile(r"isinf|isfinite|isnan|\binf\b|posinf")


def check(ctx: Context, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    """log(sum(exp(x))), log(1 + exp(x)), log(exp(x) - 1), log(1 - exp(x)), log(softmax(x)), log(sigmoid(x)), log(1 - p)."""
    name = last_name(call.func)
    if name in ("log1p", "log1p_"):
        yield from _log1p(ctx, call, scope)
        return
    inside = operand(ctx, call, scope, *_LOGS) if name in _LOGS else None
    if inside is None:
        return
    made = probability(ctx, inside, scope)
    if made is not None:
        yield _log_of(ctx, call, scope, *made)
        return
    found = [x for x in exponents(ctx, inside, scope) if not never_positive(ctx, x, scope)]
    if not found:
        if _one_minus_probability(ctx, latest(ctx, inside, scope).expr, scope):
            yield _log_one_minus(ctx, call, scope)
        return
    if _is_quotient(ctx, inside, scope) or fixed(ctx, found[0], scope) or _replaced(ctx, call, found[0], scope):
        return
    top = latest(ctx, inside, scope).expr
    if isinstance(top, ast.BinOp) and isinstance(top.op, ast.Sub):
        yield from _difference(ctx, call, scope, top, found)
    elif reduces(ctx, inside, scope):
        yield from _sum(ctx, call, scope, top, inside, found)


# -- sums and differences of exponentials ----------------------------------------------------------------------------


def _difference(ctx: Context, call: ast.Call, scope: Scope, top: ast.BinOp, found: list[ast.expr]) -> Iterator[Finding]:
    """log(exp(x) - 1) overflows, log(1 - exp(x)) is -inf at 0, log(exp(a) - exp(b)) overflows."""
    left = exponents(ctx, top.left, scope)
    if not left:
        if log_probability(ctx, found[0], scope) and ctx.symbols.const(top.left, scope) in (1, 1.0):
            yield _one_minus_exp(ctx, call, scope, found[0])
        return
    loose = [x for x in found if not bounded(ctx, x, scope) or plain_minus(ctx, x, scope)]
    if not loose or log_probability(ctx, loose[0], scope):
        return
    x = ctx.str(loose[0])
    if len(found) == 1:
        yield ctx.finding(
            "R11", call, severity(ctx, loose[0], scope),
            f"log(exp({x}) - 1) {overflow(ctx, loose[0], scope)}, and its gradient is NaN", f"y + torch.log(-torch.expm1(-y))  # with y = {x}",
        )  # fmt: skip
    else:
        other = ctx.str(found[1])
        yield ctx.finding(
            "R11", call, severity(ctx, loose[0], scope),
            f"log(exp(a) - exp(b)) {overflow(ctx, loose[0], scope)}", f"{x} + torch.log(-torch.expm1({other} - {x}))",
        )  # fmt: skip


def _sum(
    ctx: Context, call: ast.Call, scope: Scope, top: ast.expr, inside: ast.expr, found: list[ast.expr]
) -> Iterator[Finding]:
    added = isinstance(top, ast.BinOp)
    loose = [x for x in found if not bounded(ctx, x, scope) or (added and plain_minus(ctx, x, scope))]
    if not loose:
        return
    x = ctx.str(loose[0])
    if all(log_probability(ctx, f, scope) for f in found):  # exp of a log-probability is at most 1
        if _reduced(ctx, inside, scope) and not _floored(ctx, top, scope):
            yield _underflow(ctx, call, scope, loose[0])
        return
    limit = overflow(ctx, loose[0], scope)
    fix = f"torch.logsumexp({x}, dim=-1)"
    text = f"log(sum(exp({x}))) {limit}"
    if isinstance(top, ast.BinOp) and len(found) == 1 and not _reduced(ctx, inside, scope):
        numbers = [ctx.symbols.const(side, scope) for side in (top.left, top.right)]
        number = next((n for n in numbers if isinstance(n, int | float)), 1)
        text, fix = f"log(1 + exp({x})) {limit}, and its gradient is NaN", f"torch.nn.functional.softplus({x})"
        if number != 1:
            text = f"log({number:g} + exp({x})) {limit}, and its gradient is NaN"
            fix = f"torch.logaddexp({x}, torch.full_like({x}, {number:g}).log())"
    elif added and len(found) == 2 and not _reduced(ctx, inside, scope):
        text = f"log(exp(a) + exp(b)) {limit}, and where both are below -104 (-17 in float16) it is -inf"
        fix = f"torch.logaddexp({ctx.str(found[0])}, {ctx.str(found[1])})"
    yield ctx.finding("R11", call, severity(ctx, loose[0], scope), text, fix)


def _reduced(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """Summed over a dimension somewhere, and not only added up from parts."""
    e = through(ctx, expr, scope)
    if isinstance(e, ast.BinOp):
        return _reduced(ctx, e.left, scope) or _reduced(ctx, e.right, scope)
    return not isinstance(e, ast.Name | ast.Constant) and operand(ctx, e, scope, "exp", "exp_") is None and (
        operand(ctx, e, scope, "sum", "nansum", "mean", "cumsum") is not None
        or any(_reduced(ctx, i, scope) for i in (operand(ctx, e, scope, *_FLOORS, "add", "mul"),) if i is not None)
    )  # fmt: skip


def _floored(ctx: Context, top: ast.expr, scope: Scope) -> bool:
    """`.clamp_min(tiny)`, `+ 1e-8`: the logarithm stays finite."""
    if isinstance(top, ast.BinOp) and isinstance(top.op, ast.Add):
        return any(not exponents(ctx, side, scope) for side in (top.left, top.right))
    return isinstance(top, ast.Call) and last_name(top.func) in _FLOORS


def _log1p(ctx: Context, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    inside = operand(ctx, call, scope, "log1p", "log1p_")
    if inside is None:
        return
    made = latest(ctx, inside, scope).expr
    exp = operand(ctx, made, scope, "exp", "exp_")
    if exp is not None:
        if never_positive(ctx, exp, scope) or fixed(ctx, exp, scope) or log_probability(ctx, exp, scope):
            return
        if (not bounded(ctx, exp, scope) or plain_minus(ctx, exp, scope)) and not _replaced(ctx, call, exp, scope):
            x = ctx.str(exp)
            yield ctx.finding(
                "R11", call, severity(ctx, exp, scope), f"log(1 + exp({x})) {overflow(ctx, exp, scope)}, and its gradient is NaN",
                f"torch.nn.functional.softplus({x})",
            )  # fmt: skip
    elif isinstance(made, ast.UnaryOp) and isinstance(made.op, ast.USub):
        exp = operand(ctx, latest(ctx, made.operand, scope).expr, scope, "exp", "exp_")
        if probability(ctx, made.operand, scope):
            yield _log_one_minus(ctx, call, scope)
        elif exp is not None and log_probability(ctx, exp, scope) and not _replaced(ctx, call, exp, scope):
            yield _one_minus_exp(ctx, call, scope, exp)


def _replaced(ctx: Context, call: ast.Call, exponent: ast.expr, scope: Scope) -> bool:
    """torch.where(x > 20, x, log(1 + exp(x))), and where the result is looked at for inf by its name afterwards."""
    node: ast.AST | None = call
    while isinstance(node, ast.expr):
        if isinstance(node, ast.Call) and last_name(node.func) == "where":
            return True
        node = ctx.symbols.parent.get(node)
    name = dotted(node.targets[0]) if isinstance(node, ast.Assign) else None
    if name is None:
        return False
    about = {name, ctx.str(exponent)}
    for later in ctx.symbols.nodes(ast.Call, ast.Assign):
        if later.lineno <= call.lineno or ctx.symbols.scope(later) is not scope:
            continue
        if isinstance(later, ast.Assign):  # y[torch.isinf(y)] = x[...]
            held = later.targets[0]
            indexed = isinstance(held, ast.Subscript) and dotted(held.value) == name
            if indexed and _asks(ctx, held.slice, about, scope):  # type: ignore[attr-defined]
                return True
        elif last_name(later.func) in ("where", "masked_fill", "masked_fill_"):
            parts = [*later.args, later.func]
            used = any(dotted(n) == name for p in parts for n in walk(p) if isinstance(n, ast.Name | ast.Attribute))
            if used and any(_asks(ctx, p, about, scope) for p in later.args[:2]):
                return True
    return False


def _asks(ctx: Context, condition: ast.expr, about: set[str], scope: Scope) -> bool:
    """`isinf(y)`, `y == inf`, `x > 20` of the value or of its exponent."""
    made = latest(ctx, condition, scope).expr
    named = any(ctx.str(n) in about for n in walk(made) if isinstance(n, ast.Name | ast.Attribute | ast.BinOp))
    return named and (isinstance(made, ast.Compare) or _FINITE.search(ctx.str(made)) is not None)


def _is_quotient(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """log(exp(a) / sum): told at the quotient."""
    made = latest(ctx, expr, scope).expr
    return isinstance(made, ast.BinOp) and isinstance(made.op, ast.Div) and bool(exponents(ctx, made.left, scope))


# -- logarithms of probabilities -------------------------------------------------------------------------------------


def _log_of(ctx: Context, call: ast.Call, scope: Scope, which: str, of: ast.expr) -> Finding:
    x = ctx.str(of)
    if which == "softmax":
        return ctx.finding(
            "R11", call, severity(ctx, of, scope),
            "log of a softmax: a probability below 3e-8 (float16) or 1e-45 (float32) is 0 and its log -inf", f"torch.log_softmax({x}, dim=-1)",
        )  # fmt: skip
    return ctx.finding(
        "R11", call, severity(ctx, of, scope),
        f"log of a sigmoid: sigmoid is 0 from {x} < -17 in float16 (-88 in float32), and the log is -inf", f"torch.nn.functional.logsigmoid({x})",
    )  # fmt: skip


def _underflow(ctx: Context, call: ast.Call, scope: Scope, of: ast.expr) -> Finding:
    x = ctx.str(of)
    return ctx.finding(
        "R11", call, severity(ctx, of, scope),
        f"log(sum(exp({x}))) of log-probabilities: exp is 0 below {x} = -17 in float16 and -104 in float32, and log(0) is -inf",
        f"torch.logsumexp({x}, dim=-1)  # a weight w goes in as + w.log()",
    )  # fmt: skip


def _one_minus_exp(ctx: Context, call: ast.Call, scope: Scope, of: ast.expr) -> Finding:
    x = ctx.str(of)
    start = "2e-3 in bfloat16" if kind(ctx) == "bfloat16" else "2.4e-4 in float16"
    return ctx.finding(
        "R11", call, severity(ctx, of, scope),
        f"log(1 - exp({x})): exp({x}) is rounded to 1 from {x} > -{start} (-3e-8 in float32) on, and log(0) is -inf",
        f"torch.log(-torch.expm1({x}))",
    )  # fmt: skip


def _log_one_minus(ctx: Context, call: ast.Call, scope: Scope) -> Finding:
    return ctx.finding(
        "R11", call, severity(ctx, call, scope),
        f"`{ctx.str(call)}`: a probability above 0.9998 rounds to 1 in float16 (above 0.99999997 in float32), and log(0) "
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

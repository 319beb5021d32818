"""Hand-written exponentials, probabilities and their sums, seen through names, methods and selections.

Nothing here knows dtypes: it answers which exponents a formula contains, and whether a value is the result of a softmax
or sigmoid. How large an exponent can be is answered in `bounds`.
"""

from __future__ import annotations

import ast

from deploychain.audit.astnames import Ref, Scope, last_name, returns, strip_module_calls
from deploychain.audit.context import Context
from deploychain.audit.tree import walk
from deploychain.audit.values import words

REDUCERS = words("sum nansum mean cumsum")
SELECTING = words(
    "gather diagonal diag squeeze unsqueeze view reshape flatten transpose permute contiguous index_select "
    "masked_select take_along_dim clone detach expand expand_as t masked_fill masked_fill_ tril triu to float "
    "type half where select narrow chunk index_fill fill_diagonal_ nan_to_num"
)

_WITHOUT_ARGUMENTS = words("exp exp_ log log_ log2 log10 log1p log1p_ sigmoid sigmoid_ expit")


def operand(ctx: Context, expr: ast.expr, scope: Scope, *names: str) -> ast.expr | None:
    """The operand of `torch.exp(x)` or `x.exp()`."""
    if not isinstance(expr, ast.Call) or last_name(expr.func) not in names:
        return None
    full = ctx.symbols.qual(expr.func, scope)
    if full is not None:
        given = [k.value for k in expr.keywords if k.arg in ("input", "self")]
        return (expr.args or given or [None])[0] if full.startswith("torch.") else None  # type: ignore[list-item]
    if isinstance(expr.func, ast.Attribute):
        if expr.args and last_name(expr.func) in _WITHOUT_ARGUMENTS:
            return None  # `xp.exp(x)`: a function of an array module, and no method of a tensor
        return expr.func.value if ctx.symbols.qual(expr.func.value, scope) is None else None
    return None


def negated(expr: ast.expr) -> ast.expr | None:
    """The x of `-x` and `-1.0 * x`."""
    if isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.USub):
        return expr.operand
    if isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Mult):
        for minus, other in ((expr.left, expr.right), (expr.right, expr.left)):
            one = minus.operand if isinstance(minus, ast.UnaryOp) and isinstance(minus.op, ast.USub) else None
            if isinstance(one, ast.Constant) and one.value == 1:
                return other
    return None


def latest(ctx: Context, expr: ast.expr, scope: Scope) -> Ref:
    """What a name was last bound to before its use: `x = exp(x)` after `x = x - x.max()` is the exp."""
    if not isinstance(expr, ast.Name):
        return Ref(expr, scope)
    best: ast.expr | None = None
    for b in ctx.symbols.bindings(expr.id, scope):
        value = b.value
        if value is None or b.loop or b.place is not None or b.scope is not scope or value.lineno > expr.lineno:
            continue
        if any(n is expr for n in walk(value)) or (best is not None and value.lineno < best.lineno):
            continue
        best = value
    return Ref(best if best is not None else expr, scope)


def through(ctx: Context, expr: ast.expr, scope: Scope) -> ast.expr:
    """`p.gather(1, y[:, None]).squeeze(1)`, `p[rows, y]`: the p whose elements these are, unchanged."""
    for _ in range(8):
        expr = latest(ctx, expr, scope).expr
        if isinstance(expr, ast.Subscript):
            held = ctx.symbols.resolve(expr, scope)  # `outputs["probs"]` of a dictionary that is written out
            expr = held[0].expr if len(held) == 1 and held[0].expr is not expr else expr.value
            continue
        inner = operand(ctx, expr, scope, *SELECTING)
        if inner is None:
            return expr
        if last_name(getattr(expr, "func", expr)) == "where":
            inner = expr.args[1] if isinstance(expr, ast.Call) and len(expr.args) == 3 else inner
        expr = inner
    return expr


def exponents(ctx: Context, expr: ast.expr, scope: Scope, depth: int = 12) -> list[ast.expr]:
    """The x of every exp(x) that a formula of products, sums, selections and reductions is made of."""
    if depth <= 0:
        return []
    e = through(ctx, expr, scope)
    if isinstance(e, ast.UnaryOp):
        return exponents(ctx, e.operand, scope, depth - 1)
    if isinstance(e, ast.BinOp):
        if isinstance(e.op, ast.Pow):
            name = ctx.symbols.qual(e.left, scope)
            return [e.right] if name in ("math.e", "numpy.e", "torch.e") else []
        if isinstance(e.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
            return [x for side in (e.left, e.right) for x in exponents(ctx, side, scope, depth - 1)]
        return []
    inner = operand(ctx, e, scope, "exp", "exp_")
    if inner is not None:
        return [inner]
    inner = operand(ctx, e, scope, *REDUCERS, "add", "mul", "mul_", "clamp_min", "clamp")
    if inner is not None:
        found = exponents(ctx, inner, scope, depth - 1)
        if isinstance(e, ast.Call) and last_name(e.func) in ("add", "mul", "mul_"):
            for argument in e.args:
                found += exponents(ctx, argument, scope, depth - 1) if argument is not inner else []
        return found
    return []


def reduces(ctx: Context, expr: ast.expr, scope: Scope, depth: int = 8) -> bool:
    """A sum of several exponentials: reduced over a dimension, or added up."""
    e = through(ctx, expr, scope)
    if depth <= 0:
        return False
    if operand(ctx, e, scope, *REDUCERS) is not None:
        return True
    if isinstance(e, ast.BinOp):
        if isinstance(e.op, ast.Add) and exponents(ctx, e, scope):
            return True
        if isinstance(e.op, ast.Sub):  # exp(x) - 1 is no sum of exponentials
            return bool(exponents(ctx, e.left, scope)) and bool(exponents(ctx, e.right, scope))
        return reduces(ctx, e.left, scope, depth - 1) or reduces(ctx, e.right, scope, depth - 1)
    inner = operand(ctx, e, scope, "clamp", "clamp_min", "add", "mul")
    return inner is not None and reduces(ctx, inner, scope, depth - 1)


def probability(ctx: Context, expr: ast.expr, scope: Scope, depth: int = 5) -> tuple[str, ast.expr] | None:
    """("softmax" or "sigmoid", its operand) where a value is the unchanged result of one."""
    if depth <= 0:
        return None
    e = through(ctx, expr, scope)
    for name, kinds in (
        ("softmax", ("softmax", "softmin")),
        ("sigmoid", ("sigmoid", "expit", "sigmoid_")),
    ):
        inner = operand(ctx, e, scope, *kinds)
        if inner is not None:
            return name, inner
    if isinstance(e, ast.Call):
        return _of_module(ctx, e, scope, depth)
    if isinstance(e, ast.Name) and ctx.symbols.parameter_scope(e.id, scope) is not None:
        found = [
            probability(ctx, r.expr, r.scope, depth - 1) if r.expr is not e else None
            for r in ctx.symbols.resolve(e, scope)
        ]
        return found[0] if found and all(found) else None
    return None


def _of_module(ctx: Context, call: ast.Call, scope: Scope, depth: int) -> tuple[str, ast.expr] | None:
    """`self.softmax(x)`, `nn.Sigmoid()(x)`, `net(x)` of a class whose forward ends in one of them."""
    symbols = ctx.symbols
    refs = [Ref(call.func, scope)] if isinstance(call.func, ast.Call) else symbols.resolve(call.func, scope)
    for ref in refs:
        kind = _last_layer(ctx, ref)
        if kind is not None and call.args:
            return kind, call.args[0]
    cls = symbols.instance_class(call.func, scope) if not isinstance(call.func, ast.Call) else None
    function = symbols.local_function(call.func, scope)
    if cls is not None:
        function = next((f for f in symbols.functions.get("forward", ()) if f.owner is cls), None)
    values = returns(function) if function is not None else []
    found = [probability(ctx, v, function, depth - 1) for v in values if function is not None]
    if found and all(found) and found[0] is not None:
        return found[0][0], call
    return None


def _last_layer(ctx: Context, ref: Ref) -> str | None:
    made = strip_module_calls(ref.expr)
    if not isinstance(made, ast.Call):
        return None
    name = ctx.symbols.qual(made.func, ref.scope) or ""
    if name == "torch.nn.Sequential" and made.args and not isinstance(made.args[-1], ast.Starred):
        return _last_layer(ctx, Ref(made.args[-1], ref.scope))
    return {"torch.nn.Softmax": "softmax", "torch.nn.Softmax2d": "softmax", "torch.nn.Sigmoid": "sigmoid"}.get(name)

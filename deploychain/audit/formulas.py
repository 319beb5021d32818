"""Hand-written exponentials, probabilities and their sums, seen through names, methods and selections.

Nothing here knows dtypes: it answers which exponents a formula contains, whether they are bounded, and whether a value
is the result of a softmax or sigmoid.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import UNKNOWN, Ref, Scope, last_name, returns, strip_module_calls
from deploychain.audit.context import Context
from deploychain.audit.tree import children, walk
from deploychain.audit.values import LOWER_LAYERS, words

REDUCERS = words("sum nansum mean cumsum")
SELECTING = words(
    "gather diagonal diag squeeze unsqueeze view reshape flatten transpose permute contiguous index_select "
    "masked_select take_along_dim clone detach expand expand_as t masked_fill masked_fill_ tril triu to float "
    "type half where select narrow chunk index_fill fill_diagonal_ nan_to_num"
)
# What takes the largest value off, or keeps it from being large.
_SHIFTING = words(
    "max amax maximum logsumexp clamp clip clamp_ clamp_max minimum cummax cumlogsumexp logcumsumexp log_softmax"
)
# Functions into [-1, 1]: bounded unless they are scaled up.
_UNIT = words("sigmoid tanh softmax normalize cosine_similarity cos sin logsigmoid hardsigmoid softsign hardtanh")
_POSITIVE = words("abs pow square norm cdist dist relu softplus exp vector_norm pairwise_distance mse_loss")
_POSITIVE_NAMES = ("dist", "energy", "cost", "sq", "var", "age", "delta_t", "abs", "norm")
_MAX_FP32, _MAX_FP16 = 88.7, 11.1


def operand(ctx: Context, expr: ast.expr, scope: Scope, *names: str) -> ast.expr | None:
    """The operand of `torch.exp(x)` or `x.exp()`."""
    if not isinstance(expr, ast.Call) or last_name(expr.func) not in names:
        return None
    full = ctx.symbols.qual(expr.func, scope)
    if full is not None:
        given = [k.value for k in expr.keywords if k.arg in ("input", "self")]
        return (expr.args or given or [None])[0] if full.startswith("torch.") else None  # type: ignore[list-item]
    if isinstance(expr.func, ast.Attribute):
        return expr.func.value if ctx.symbols.qual(expr.func.value, scope) is None else None
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


def bounded(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """The maximum was subtracted, the value stays small, or it is minus something (a distance, an energy)."""
    queue: list[ast.expr] = [expr]
    seen: set[int] = set()
    unit = False
    scale = 1.0
    for _ in range(40):
        if not queue:
            break
        current = queue.pop()
        for node in _walk(ctx, current, scope):
            name = last_name(node.func) if isinstance(node, ast.Call) else ""
            if name in _SHIFTING or ("max" in name and "softmax" not in name) or isinstance(node, ast.Compare):
                return True
            unit = unit or name in _UNIT or "normalize" in name
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Mult):
                scale *= _factor(ctx, node, scope)
            if isinstance(node, ast.Name):
                for binding in ctx.symbols.bindings(node.id, scope):
                    if binding.value is not None and id(binding.value) not in seen:
                        seen.add(id(binding.value))
                        queue.append(binding.value)
    if unit:
        pure_half = "autocast" not in ctx.text and bool(ctx.walk.half_calls)
        return scale <= (_MAX_FP16 if pure_half else _MAX_FP32)
    return _negative(latest(ctx, expr, scope).expr)


def _walk(ctx: Context, expr: ast.expr, scope: Scope) -> Iterator[ast.AST]:
    """The parts of an expression, without what a linear layer or convolution is fed with: it bounds nothing."""
    stack: list[ast.AST] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            made = ctx.symbols.resolve(node.func, scope) if node.args else []
            names = [last_name(r.expr.func) if isinstance(r.expr, ast.Call) else "" for r in made]
            if names and all(n in LOWER_LAYERS for n in names):
                continue
        yield node
        stack.extend(children(node))


def _factor(ctx: Context, node: ast.BinOp, scope: Scope) -> float:
    """The known number above 1 by which something is multiplied: 100 of `x / 0.01`."""
    value = ctx.symbols.const(node.right, scope)
    if isinstance(node.op, ast.Mult) and not isinstance(value, int | float):
        value = ctx.symbols.const(node.left, scope)
    if value is UNKNOWN or isinstance(value, bool) or not isinstance(value, int | float) or value == 0:
        return 1.0
    return max(abs(1 / value if isinstance(node.op, ast.Div) else value), 1.0)


def _negative(expr: ast.expr) -> bool:
    while True:
        if isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Mult | ast.Div):
            if isinstance(expr.right, ast.UnaryOp) and isinstance(expr.right.op, ast.USub):
                return True
            expr = expr.left
        elif isinstance(expr, ast.Call) and last_name(expr.func) in ("mul", "mul_", "div", "div_") and expr.args:
            if isinstance(expr.args[-1], ast.UnaryOp) and isinstance(expr.args[-1].op, ast.USub):
                return True
            expr = expr.func.value if isinstance(expr.func, ast.Attribute) else expr.args[0]
        else:
            break
    if isinstance(expr, ast.Call) and last_name(expr.func) in ("neg", "negative"):
        return True
    return isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.USub)


def never_positive(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """Minus an absolute value, a square or a distance."""
    made = latest(ctx, expr, scope).expr
    if not _negative(made):
        return False
    for node in walk(made):
        if isinstance(node, ast.Call) and last_name(node.func) in _POSITIVE:
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            return True
        if isinstance(node, ast.Name) and any(part in node.id.lower() for part in _POSITIVE_NAMES):
            return True
    return False


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

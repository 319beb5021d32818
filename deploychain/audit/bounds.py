"""How large an exponent can be: bounded, never positive, a log-probability, a constant of the construction.

Like `formulas` this reads names and formulas, and knows no dtypes but those that the code writes out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import UNKNOWN, Scope, last_name
from deploychain.audit.context import Context
from deploychain.audit.formulas import SELECTING, latest, negated, operand
from deploychain.audit.tree import children, walk
from deploychain.audit.values import LOWER_LAYERS, words

# What takes the largest value off, or keeps it from being large.
_SHIFTING = words(
    "max amax maximum logsumexp clamp clip clamp_ clamp_max minimum cummax cumlogsumexp logcumsumexp log_softmax"
)
# Functions into [-1, 1]: bounded unless they are scaled up.
_UNIT = words("sigmoid tanh softmax normalize cosine_similarity cos sin logsigmoid hardsigmoid softsign hardtanh")
_POSITIVE = words("abs pow square norm cdist dist relu softplus exp vector_norm pairwise_distance mse_loss")
_POSITIVE_NAMES = ("dist", "energy", "cost", "sq", "var", "age", "delta_t", "abs", "norm")
_MAX_FP32, _MAX_FP16 = 88.7, 11.1

_LOG_PROBABILITY = re.compile(
    r"(^|[^a-z]|ref|pol|chosen|rejected)(log_?(p|q)s?|l_?probs?|log_pi)(_|\d|$)|log_?(prob|lik|pdf|pmf|softmax|sigmoid|surviv)|loglh"
)
_DIFFERENCE = re.compile(r"diff|ratio|odds|delta")
_LOSSES = words("cross_entropy nll_loss binary_cross_entropy binary_cross_entropy_with_logits")
_MADE = words("tensor as_tensor Tensor FloatTensor full ones zeros eye")
_COUNTED = words("arange linspace")
_CONSTRUCTION = re.compile(r"^(__init__|__post_init__|_?reset_\w*param\w*|_?init(_\w+)?|_?initiali[sz]e\w*)$")


# -- bounded -------------------------------------------------------------------------------------------------------


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


# -- signs ---------------------------------------------------------------------------------------------------------


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
    """Minus an absolute value, a square or a distance, also where that has a name of its own."""
    made = latest(ctx, expr, scope).expr
    if not _negative(made):
        return False
    for node in walk(made):
        if _positive(node) or (isinstance(node, ast.Name) and _positive_name(ctx, node, scope)):
            return True
    return False


def _positive(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        lower = next((k.value for k in node.keywords if k.arg == "min"), node.args[0] if node.args else None)
        zero = isinstance(lower, ast.Constant) and isinstance(lower.value, int | float) and lower.value >= 0
        zero = zero or (lower is not None and last_name(lower).lower() in ("eps", "epsilon", "tiny"))
        return name in _POSITIVE or (name in ("clamp", "clip", "clamp_min") and zero)
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)


def _positive_name(ctx: Context, name: ast.Name, scope: Scope) -> bool:
    if any(part in name.id.lower() for part in _POSITIVE_NAMES):
        return True
    made: ast.expr = latest(ctx, name, scope).expr
    while isinstance(made, ast.BinOp) and isinstance(made.op, ast.Mult | ast.Div):
        made = made.left
    return made is not name and _positive(made)


def plain_minus(ctx: Context, x: ast.expr, scope: Scope) -> bool:
    """`exp(-score)` of a value that may have either sign."""
    return negated(latest(ctx, x, scope).expr) is not None and not any(
        isinstance(n, ast.Call) and last_name(n.func) in ("clamp", "clamp_", "clip", "tanh", "normalize", "sigmoid")
        for n in walk(x)
    )


# -- log-probabilities ---------------------------------------------------------------------------------------------


def log_probability(ctx: Context, expr: ast.expr, scope: Scope, depth: int = 4) -> bool:
    """The logarithm of a probability or density, by what it is called or made of: its exponential does not overflow."""
    if depth <= 0:
        return False
    e = expr
    if isinstance(e, ast.BinOp):
        if isinstance(e.op, ast.Add):
            return all(log_probability(ctx, side, scope, depth - 1) for side in (e.left, e.right))
        sides = (e.left, e.right) if isinstance(e.op, ast.Mult) else (e.left,)
        return isinstance(e.op, ast.Mult | ast.Div) and any(log_probability(ctx, s, scope, depth - 1) for s in sides)
    if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
        return _is_loss(e.operand)
    if _LOG_PROBABILITY.search(_called(e)) and not _DIFFERENCE.search(_called(e)):
        return True
    if isinstance(e, ast.Subscript):
        return log_probability(ctx, e.value, scope, depth - 1)
    inner = operand(ctx, e, scope, *SELECTING, "sum", "mean", "tensor", "as_tensor")
    if inner is not None:
        return log_probability(ctx, inner, scope, depth - 1)
    if isinstance(e, ast.Name):
        made = [b.value for b in ctx.symbols.bindings(e.id, scope) if b.value is not None and not b.loop]
        return bool(made) and all(m is not e and log_probability(ctx, m, scope, depth - 1) for m in made)
    return False


def _called(e: ast.expr) -> str:
    return last_name(e.func if isinstance(e, ast.Call) else e).lower()


def _is_loss(expr: ast.expr) -> bool:
    """`F.cross_entropy(..., reduction="none").view(...)`: minus a log-probability."""
    return any(isinstance(n, ast.Call) and last_name(n.func) in _LOSSES for n in walk(expr))


# -- constants -----------------------------------------------------------------------------------------------------


def fixed(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """No activation: made of constants, or worked out while a module is constructed."""
    return _constructing(ctx, scope) or _constant(ctx, expr, scope)


def _constructing(ctx: Context, scope: Scope) -> bool:
    """In `__init__` and the like, or in a function that only these call."""
    if _CONSTRUCTION.match(scope.name):
        return True
    sites = ctx.symbols.call_sites(scope) if isinstance(scope.node, ast.FunctionDef) else []
    return bool(sites) and all(_CONSTRUCTION.match(ctx.symbols.scope(site).name) for site in sites)


def _constant(ctx: Context, expr: ast.expr, scope: Scope, depth: int = 6) -> bool:
    if depth <= 0:
        return False
    if isinstance(ctx.symbols.const(expr, scope), int | float):
        return True
    e = latest(ctx, expr, scope).expr
    if isinstance(e, ast.List | ast.Tuple):
        return all(_constant(ctx, x, scope, depth - 1) for x in e.elts)
    if isinstance(e, ast.UnaryOp):
        return _constant(ctx, e.operand, scope, depth - 1)
    if isinstance(e, ast.BinOp):
        return all(_constant(ctx, side, scope, depth - 1) for side in (e.left, e.right))
    if not isinstance(e, ast.Call):
        return False
    name = last_name(e.func)
    if (ctx.symbols.qual(e.func, scope) or "").startswith("torch."):
        if name in _COUNTED or name in ("ones", "zeros", "eye"):
            return True
        given = e.args[1:] if name == "full" else e.args
        return (name in _MADE or name in _ELEMENTWISE) and all(_constant(ctx, a, scope, depth - 1) for a in given)
    method = isinstance(e.func, ast.Attribute) and name in _ELEMENTWISE
    return method and _constant(ctx, e.func.value, scope, depth - 1)  # type: ignore[attr-defined]


_ELEMENTWISE = words("exp log expm1 log1p float double half to abs neg sqrt item mul add sub div pow view reshape")


# -- float32 that is written out -----------------------------------------------------------------------------------


def written_float32(ctx: Context, expr: ast.expr, scope: Scope, depth: int = 6) -> bool:
    """`x.float()`, `torch.tensor(v, dtype=torch.float32)`, and what is made of one, by `(t.float() for t in qkv)`."""
    if depth <= 0:
        return False
    if isinstance(expr, ast.Name):
        made = [
            b for b in ctx.symbols.bindings(expr.id, scope)
            if b.value is not None and not b.loop and b.scope is scope and b.value.lineno <= expr.lineno
            and not any(n is expr for n in walk(b.value))
        ]  # fmt: skip
        last = max(made, key=lambda b: b.value.lineno if b.value else 0, default=None)
        value = last.value if last is not None else None
        if value is None or last is None:
            return False
        if last.place is not None:
            value = _each(value, last.place)
        return value is not None and written_float32(ctx, value, scope, depth - 1)
    if isinstance(expr, ast.BinOp):  # float32 wins
        return any(written_float32(ctx, side, scope, depth - 1) for side in (expr.left, expr.right))
    if isinstance(expr, ast.UnaryOp):
        return written_float32(ctx, expr.operand, scope, depth - 1)
    if isinstance(expr, ast.Subscript):
        return written_float32(ctx, expr.value, scope, depth - 1)
    if not isinstance(expr, ast.Call):
        return False
    name = last_name(expr.func)
    asked = next((k.value for k in expr.keywords if k.arg == "dtype"), None)
    if asked is not None:
        return ctx.amp.dtype(asked, scope) in ("fp32", "fp64")
    if name in ("float", "double") and not expr.args:
        return True
    if name in ("to", "type") and any(ctx.amp.dtype(a, scope) in ("fp32", "fp64") for a in expr.args):
        return True
    if name in ("half", "bfloat16", "to", "type", "matmul", "mm", "bmm"):
        return False
    if isinstance(expr.func, ast.Attribute) and ctx.symbols.qual(expr.func, scope) is None:
        return written_float32(ctx, expr.func.value, scope, depth - 1)
    torchs = (ctx.symbols.qual(expr.func, scope) or "").startswith("torch.")
    return torchs and bool(expr.args) and written_float32(ctx, expr.args[0], scope, depth - 1)


def _each(value: ast.expr, place: int) -> ast.expr | None:
    """What each name gets in `a, b = (f(t) for t in ...)`, `map(lambda t: ..., ...)`, `x.float().unbind(0)`."""
    if isinstance(value, ast.GeneratorExp | ast.ListComp):
        return value.elt
    if isinstance(value, ast.Tuple | ast.List):
        return value.elts[place] if place < len(value.elts) else None
    if isinstance(value, ast.Call):
        mapped = value.args[0] if last_name(value.func) == "map" and value.args else None
        if isinstance(mapped, ast.Lambda):
            return mapped.body
        return value if last_name(value.func) in ("unbind", "chunk", "split", "topk", "max", "min", "sort") else None
    return None

"""R11: formulas that overflow although torch has a stable function for them."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Ref, Scope, last_name
from deploychain.audit.context import NOTE, WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.values import words

_REDUCERS = frozenset({"sum", "nansum"})
_BOUNDING = words(
    "max amax maximum logsumexp clamp clip clamp_ sigmoid tanh softmax log_softmax normalize cosine_similarity clamp_max "
    "minimum cos sin cummax logsigmoid"
)
_SELECTING = words(
    "gather diagonal diag squeeze unsqueeze view reshape flatten transpose permute contiguous index_select masked_select "
    "take_along_dim"
)
# Attention modules are written for any dtype: the note is for files that show half precision or training.
_HALF_SIGNS = ("autocast", "GradScaler", ".half(", "torch.float16", "fp16", "16-mixed", ".backward(")


def check(ctx: Context) -> Iterator[Finding]:
    for node in ctx.symbols.nodes(ast.BinOp, ast.Call):
        scope = ctx.symbols.scope(node)
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Div):
                yield from _softmax(ctx, node, scope)
            if isinstance(node.op, ast.Div | ast.Mult):
                yield from _attention(ctx, node, scope)
        elif isinstance(node, ast.Call):
            yield from _log(ctx, node, scope)


def _op(ctx: Context, expr: ast.expr, scope: Scope, *names: str) -> ast.expr | None:
    """The operand of torch.exp(x) or x.exp()."""
    if not isinstance(expr, ast.Call) or last_name(expr.func) not in names:
        return None
    full = ctx.symbols.qual(expr.func, scope)
    if full is not None:
        return expr.args[0] if full.startswith("torch.") and expr.args else None
    if isinstance(expr.func, ast.Attribute):
        base = ctx.symbols.qual(expr.func.value, scope)
        return expr.func.value if base is None else None
    return None


def _first(ctx: Context, expr: ast.expr, scope: Scope, *names: str) -> tuple[ast.expr, Scope] | None:
    """The operand of an op, looking through names."""
    for ref in _latest(ctx, expr, scope):
        inner = _op(ctx, ref.expr, ref.scope, *names)
        if inner is not None:
            return inner, ref.scope
    return None


def _latest(ctx: Context, expr: ast.expr, scope: Scope) -> list[Ref]:
    """What a name was last bound to before its use: `x = exp(x)` after `x = x - x.max()` is the exp."""
    if isinstance(expr, ast.Name):
        before = [
            b for b in ctx.symbols.bindings(expr.id, scope)
            if b.value is not None and not b.loop and b.place is None and b.scope is scope and b.value.lineno <= expr.lineno
            and not any(n is expr for n in ast.walk(b.value))
        ]  # fmt: skip
        if before:
            last = max(before, key=lambda b: b.value.lineno)  # type: ignore[union-attr]
            return [Ref(last.value, scope)]  # type: ignore[arg-type]
        return [Ref(expr, scope)]
    return [Ref(expr, scope)]


def _softmax(ctx: Context, node: ast.BinOp, scope: Scope) -> Iterator[Finding]:
    """exp(x) / exp(x).sum()"""
    top = _first(ctx, _picked(ctx, node.left, scope), scope, "exp")
    if top is None:
        return
    total = _first(ctx, node.right, scope, *_REDUCERS)
    if total is None:
        return
    below = _first(ctx, total[0], total[1], "exp")
    if below is None:
        return
    if ast.unparse(top[0]) != ast.unparse(below[0]) or _shifted(ctx, top[0], top[1]):
        return
    x = ctx.str(top[0])
    yield ctx.finding(
        "R11", node, WARNING,
        f"hand-written softmax of `{x}`: exp overflows from {x} > 11.1 in float16 and > 88.7 in float32 (CUDA autocast runs exp in "
        "float32), and inf/inf is NaN",
        f"torch.softmax({x}, dim=-1)",
    )  # fmt: skip


def _picked(ctx: Context, expr: ast.expr, scope: Scope) -> ast.expr:
    """`torch.diagonal(e)`, `e.gather(...)`: some of the elements of e."""
    for ref in _latest(ctx, expr, scope):
        inner = _op(ctx, ref.expr, ref.scope, "diagonal", "diag", "gather")
        if inner is not None:
            return inner
    return expr


def _elements(ctx: Context, expr: ast.expr, scope: Scope) -> ast.expr:
    """`p.gather(1, y[:, None]).squeeze(1)`, `p[rows, y]`: the p whose elements these are, unchanged."""
    for _ in range(6):
        latest = _latest(ctx, expr, scope)[0].expr
        if isinstance(latest, ast.Subscript):
            expr = latest.value
            continue
        inner = _op(ctx, latest, scope, *_SELECTING)
        if inner is None:
            break
        expr = inner
    return expr


def _shifted(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """The maximum was subtracted, the value is bounded, or it is minus something (a distance, an energy)."""
    queue: list[ast.expr] = [expr]
    seen: set[int] = set()
    for _ in range(40):
        if not queue:
            break
        current = queue.pop()
        for node in ast.walk(current):
            if isinstance(node, ast.Call) and last_name(node.func) in _BOUNDING:
                return True
            if isinstance(node, ast.Name):
                for binding in ctx.symbols.bindings(node.id, scope):
                    if binding.value is not None and id(binding.value) not in seen:
                        seen.add(id(binding.value))
                        queue.append(binding.value)
    while isinstance(expr, ast.BinOp) and isinstance(expr.op, ast.Mult | ast.Div):
        expr = expr.left
    return isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.USub)


def _log(ctx: Context, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    inside = _op(ctx, call, scope, "log")
    if inside is None:
        return
    softmax = _first(ctx, _elements(ctx, inside, scope), scope, "softmax")
    if softmax is not None:
        x = ctx.str(softmax[0])
        yield ctx.finding(
            "R11", call, WARNING,
            "log of a softmax: a probability below 6e-8 (float16) or 1e-45 (float32) is 0 and its log -inf",
            f"torch.log_softmax({x}, dim=-1)",
        )  # fmt: skip
        return
    sigmoid = _first(ctx, inside, scope, "sigmoid")
    if sigmoid is not None:
        x = ctx.str(sigmoid[0])
        yield ctx.finding(
            "R11", call, WARNING,
            f"log of a sigmoid: sigmoid is 0 from {x} < -17 in float16 (-104 in float32), and the log is -inf",
            f"torch.nn.functional.logsigmoid({x})",
        )  # fmt: skip
        return
    total = _first(ctx, inside, scope, *_REDUCERS)
    if total is not None:
        exp = _first(ctx, total[0], total[1], "exp")
        if exp is not None and not _shifted(ctx, exp[0], exp[1]):
            x = ctx.str(exp[0])
            yield ctx.finding(
                "R11", call, WARNING,
                f"log(sum(exp({x}))) overflows from {x} > 11.1 in float16 and > 88.7 in float32",
                f"torch.logsumexp({x}, dim=-1)",
            )  # fmt: skip
        return
    for ref in _latest(ctx, inside, scope):
        if _one_minus_probability(ctx, ref.expr, ref.scope):
            yield ctx.finding(
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
    if _first(ctx, right, scope, "sigmoid", "softmax") is not None:
        return True
    refs = ctx.symbols.resolve(right, scope)
    if any(
        isinstance(n, ast.Call) and last_name(n.func) in ("clamp", "clip", "clamp_")
        for r in refs
        for n in ast.walk(r.expr)
    ):
        return False
    # hand-written binary cross-entropy on an argument: log(p) and log(1 - p) of the same p
    if not isinstance(right, ast.Name) or not any(isinstance(r.expr, ast.Name) for r in refs):
        return False
    if any(isinstance(b.value, (ast.Call, ast.BinOp)) for b in ctx.symbols.bindings(right.id, scope)):
        return False
    for other in ctx.symbols.calls:
        if ctx.symbols.scope(other) is scope and last_name(other.func) == "log":
            operand = _op(ctx, other, scope, "log")
            if isinstance(operand, ast.Name) and operand.id == right.id:
                return True
    return False


def _attention(ctx: Context, node: ast.BinOp, scope: Scope) -> Iterator[Finding]:
    """(q @ k.T) / sqrt(d), then softmax: the product overflows before it is scaled."""
    product, scale = node.left, node.right
    if not any(sign in ctx.text for sign in _HALF_SIGNS):
        return
    made = _product(ctx, product, scope)
    if made is None and isinstance(node.op, ast.Mult):
        product, scale = node.right, node.left
        made = _product(ctx, product, scope)
    if made is None or not _looks_scale(ctx, scale, scope, isinstance(node.op, ast.Div)):
        return
    if _only_bf16(ctx) or not _followed_by_softmax(ctx, node, scope) or any(_tamed(ctx, q, scope) for q in made):
        return
    left = ctx.str(made[0])
    yield ctx.finding(
        "R11", node, NOTE,
        f"the product of `{left}` and `{ctx.str(made[1])}` is scaled only afterwards: in float16 it is inf once q.k passes 65504 "
        "(head_dim 64 and values around 32), while the scaled value would fit",
        f"scale the query first: ({left} * scale) @ ..., or torch.nn.functional.scaled_dot_product_attention(q, k, v)",
    )  # fmt: skip


def _product(ctx: Context, expr: ast.expr, scope: Scope) -> tuple[ast.expr, ast.expr] | None:
    for ref in _latest(ctx, expr, scope):
        e = ref.expr
        if isinstance(e, ast.BinOp) and isinstance(e.op, ast.MatMult) and _transposed(e.right):
            return e.left, e.right
        if isinstance(e, ast.Call) and last_name(e.func) in ("matmul", "bmm"):
            full = ctx.symbols.qual(e.func, ref.scope)
            if full is not None and full.startswith("torch.") and len(e.args) == 2 and _transposed(e.args[1]):
                return e.args[0], e.args[1]
            if full is None and isinstance(e.func, ast.Attribute) and len(e.args) == 1 and _transposed(e.args[0]):
                return e.func.value, e.args[0]
    return None


def _transposed(expr: ast.expr) -> bool:
    if isinstance(expr, ast.Call) and last_name(expr.func) in ("transpose", "permute", "t", "swapaxes", "contiguous"):
        return True
    return isinstance(expr, ast.Attribute) and expr.attr in ("T", "mT")


def _looks_scale(ctx: Context, expr: ast.expr, scope: Scope, divides: bool) -> bool:
    for ref in ctx.symbols.resolve(expr, scope):
        for node in ast.walk(ref.expr):
            if isinstance(node, ast.Call) and last_name(node.func) in ("sqrt", "rsqrt"):
                return True
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
                power = ctx.symbols.const(node.right, ref.scope)
                if power in (0.5, -0.5):
                    return True
    name = last_name(expr)
    return name in ("scale", "scaling", "softmax_scale", "sqrt_d", "temper") or (divides and name in ("scale_factor",))


def _followed_by_softmax(ctx: Context, node: ast.AST, scope: Scope) -> bool:
    for call in ctx.symbols.calls:
        if last_name(call.func) in ("softmax", "Softmax", "attend", "log_softmax") and ctx.symbols.scope(call) is scope:
            return call.lineno >= getattr(node, "lineno", 0)
        if last_name(call.func) in ("attn_softmax", "attend") and ctx.symbols.scope(call) is scope:
            return True
    return False


def _tamed(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    """Normalised or scaled before the product."""
    for ref in ctx.symbols.resolve(expr, scope):
        for node in ast.walk(ref.expr):
            if isinstance(node, ast.Call) and (
                "norm" in last_name(node.func).lower() or last_name(node.func) == "float"
            ):
                return True
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
                return True
    return False


def _only_bf16(ctx: Context) -> bool:
    return "bfloat16" in ctx.text and "float16" not in ctx.text.replace("bfloat16", "") and ".half(" not in ctx.text


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
    trigger=r"exp\(|log\(|\bbackward\(|autocast|GradScaler|\.half\(|float16|fp16",
)

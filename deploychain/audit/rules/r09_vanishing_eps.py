"""R09: a small constant that is 0 in float16, where the arithmetic really is float16."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, argument, keyword
from deploychain.audit.context import WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.rules.r08_half_params import VANISHING
from deploychain.audit.values import Seen, Value

_CLAMPS = {"clamp": 0, "clamp_min": 0, "clamp_": 0, "clip": 0}
# eps arguments of functions that compute with it in the dtype of the input, and their defaults
_EPS_FUNCTIONS = {"normalize": 1e-12, "cosine_similarity": 1e-8, "pairwise_distance": 1e-6}


def check(ctx: Context) -> Iterator[Finding]:
    done: set[int] = set()
    for seen in ctx.seen:
        if id(seen.node) in done:
            continue
        for finding in _judge(ctx, seen):
            done.add(id(seen.node))
            yield finding
    yield from _group_norm(ctx)


def _judge(ctx: Context, seen: Seen) -> Iterator[Finding]:
    scope: Scope = seen.function  # type: ignore[assignment]
    if isinstance(seen.node, ast.BinOp) and seen.name in ("+", "-"):
        left, right = seen.args
        for value, expr in ((left, seen.node.right), (right, seen.node.left)):
            eps = ctx.symbols.const(expr, scope)
            if _vanishes(eps) and _is_fp16(value):
                yield _finding(ctx, seen, seen.node, eps, value)
    elif isinstance(seen.node, ast.Call):
        leaf = seen.name.rpartition(".")[2]
        call = seen.node
        if leaf in ("add", "add_") and seen.args and _is_fp16(seen.args[0]):
            eps = ctx.symbols.const(argument(call, 1 if seen.name.startswith("torch.") else 0, "other"), scope)
            if _vanishes(eps):
                yield _finding(ctx, seen, call, eps, seen.args[0])
        elif leaf in _CLAMPS and seen.args and _is_fp16(seen.args[0]):
            method = not seen.name.startswith("torch.")
            bound = argument(call, 0 if method else 1, "min")
            eps = ctx.symbols.const(bound, scope)
            if _vanishes(eps):
                yield _finding(ctx, seen, call, eps, seen.args[0])
        elif (
            leaf in _EPS_FUNCTIONS
            and not seen.name.startswith("torchvision.")
            and seen.args
            and seen.args[0].dtype == "fp16"
            and seen.args[0].sure
        ):
            if seen.region is not None and seen.region.half and seen.region.cuda:
                return  # on the FP32 list of CUDA autocast
            given = keyword(call, "eps")
            eps = ctx.symbols.const(given, scope) if given is not None else _EPS_FUNCTIONS[leaf]
            if _vanishes(eps):
                yield _finding(ctx, seen, call, eps, seen.args[0], default=given is None)


def _is_fp16(value: Value) -> bool:
    # An operand that was produced by a model under fp16 autocast counts; one whose dtype is only "some half" does not.
    return value.dtype == "fp16" and (value.sure or isinstance(value.via, ast.Call)) and not value.module


def _vanishes(eps: object) -> bool:
    return isinstance(eps, int | float) and not isinstance(eps, bool) and 0 < abs(eps) <= VANISHING


def _finding(ctx: Context, seen: Seen, node: ast.expr, eps: float, value: Value, default: bool = False) -> Finding:
    origin = (
        ""
        if value.sure
        else f", if `{ctx.str(value.via)}` ends in a float16 op such as a linear layer"
        if value.via
        else ""
    )
    what = f"the default eps={eps:g}" if default else f"{eps:g}"
    return ctx.finding(
        "R09", node, WARNING,
        f"`{ctx.str(node)}` is computed in float16 here{origin}; {what} rounds to 0 there (everything up to 2.98e-8 does), so it "
        "guards nothing: a zero row gives NaN or inf",
        "use 1e-6 or larger, or do this block in float32 (`x.float()`)",
    )  # fmt: skip


def _group_norm(ctx: Context) -> Iterator[Finding]:
    """nn.GroupNorm casts eps to the dtype of its parameters on CUDA: matters for pure .half() models only."""
    halved = ctx.walk.half_modules if ctx.text.find("GroupNorm") >= 0 else {}
    if not halved:
        return
    for call, scope in ctx.calls("torch.nn.GroupNorm"):
        eps = ctx.symbols.const(argument(call, 2, "eps"), scope)
        cls = ctx.symbols.class_of(scope)
        if _vanishes(eps) and cls is not None and cls.name in halved:
            yield ctx.finding(
                "R09", call, WARNING,
                f"GroupNorm(eps={eps:g}) in a model that is made half in line {halved[cls.name].lineno}: the CUDA kernel "  # type: ignore[attr-defined]
                "casts eps to float16, where it is 0",
                "keep the eps that the model was trained with and leave GroupNorm in float32 (autocast does)",
            )  # fmt: skip


RULE = Rule(
    id="R09",
    name="vanishing-eps",
    title="A constant that is 0 in float16 guards a division",
    how="code, model, graph",
    belief="LayerNorm's eps=1e-5 becomes 0 in float16 and must be replaced.",
    truth=(
        "float16(1e-5) is 1.00136e-5, and the kernels of LayerNorm and BatchNorm take eps in float32 anyway (error below 5e-4 for "
        "every std and eps tried). Only constants up to 2^-25 = 2.98e-8 vanish (1e-8, 1e-12), and only where the arithmetic is "
        "float16: pure .half(), CPU autocast, sqrt/div/mul under CUDA autocast, Adam on float16 parameters."
    ),
    experiment="float16 of 1e-5, 1e-8, 1e-12; half LayerNorm at eps 1e-12; x/(std+1e-8) on a zero row.",
    bad="h = encoder(x)          # float16 under autocast\nh = h / (h.std(-1, keepdim=True) + 1e-8)",
    good="h = encoder(x).float()\nh = h / (h.std(-1, keepdim=True) + 1e-6)",
    check=check,
    trigger=r"autocast|half|float16|fp16|16-mixed|precision=16|HalfTensor",
)

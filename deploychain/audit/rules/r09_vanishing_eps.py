"""R09: a small constant that is 0 in float16, where the arithmetic really is float16."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from deploychain.audit.astnames import Scope, argument, keyword, last_name
from deploychain.audit.callees import callers
from deploychain.audit.context import WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.half_parameters import trained_dtype
from deploychain.audit.rules.r08_half_params import VANISHING
from deploychain.audit.tree import walk
from deploychain.audit.values import Seen, Value

_CLAMPS = {"clamp": 0, "clamp_min": 0, "clamp_": 0, "clip": 0}
# eps arguments of functions that compute with it in the dtype of the input, and their defaults
_EPS_FUNCTIONS = {"normalize": 1e-12, "cosine_similarity": 1e-8, "pairwise_distance": 1e-6}
_EPS_LAYERS = {"layer:CosineSimilarity": 1e-8}
_MAXIMA = frozenset({"maximum", "max", "fmax"})
# optimisers that are not R08's, with their default eps
_OPTIMIZERS = {"RMSprop": 1e-8, "Adagrad": 1e-10, "Adadelta": 1e-6, "Rprop": None}


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
        for value, against, expr in ((left, right, seen.node.right), (right, left, seen.node.left)):
            eps = _constant_tensor(ctx, expr, scope) if _is_fp16(value) and against.dtype != "fp32" else None
            if eps is not None and _vanishes(eps):
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
        elif (leaf in _MAXIMA and len(seen.args) > 1 and call.args) or (leaf == "where" and len(call.args) == 3):
            first = 1 if leaf == "where" else 0
            for value, other in ((seen.args[first], call.args[-1]), (seen.args[first + 1], call.args[first])):
                eps = _constant_tensor(ctx, other, scope)
                if _vanishes(eps) and _is_fp16(value):
                    yield _finding(ctx, seen, call, eps, value)
        elif seen.name.startswith("torch.optim.") and ".lr_scheduler" not in seen.name:
            yield from _optimizer(ctx, seen, call, leaf)
        elif seen.name in _EPS_LAYERS and seen.args and seen.args[0].dtype == "fp16":
            yield from _layer(ctx, seen, call, scope)
        elif (
            leaf in _EPS_FUNCTIONS
            and not seen.name.startswith("torchvision.")
            and seen.args
            and (seen.args[0].sure or (seen.region is not None and seen.region.half))
            and _is_fp16(seen.args[0])
        ):
            if seen.region is not None and seen.region.half and seen.region.cuda:
                return  # on the FP32 list of CUDA autocast
            given = keyword(call, "eps")
            eps = ctx.symbols.const(given, scope) if given is not None else _EPS_FUNCTIONS[leaf]
            if _vanishes(eps):
                yield _finding(ctx, seen, call, eps, seen.args[0], default=given is None)


def _constant_tensor(ctx: Context, expr: ast.expr, scope: Scope) -> Any:
    """1e-8 of `torch.tensor(1e-8, ...)`, `x.new_tensor(1e-8)`, `torch.full_like(x, 1e-8)`, `x.new_full(size, 1e-8)`."""
    for ref in ctx.symbols.resolve(expr, scope):
        if isinstance(ref.expr, ast.Call):
            name = last_name(ref.expr.func)
            index = {"tensor": 0, "new_tensor": 0, "as_tensor": 0, "full_like": 1, "new_full": 1}.get(name)
            value = (
                ctx.symbols.const(argument(ref.expr, index, "fill_value", "data"), ref.scope)
                if index is not None
                else None
            )
            if isinstance(value, int | float):
                return value
    return ctx.symbols.const(expr, scope)


def _optimizer(ctx: Context, seen: Seen, call: ast.Call, leaf: str) -> Iterator[Finding]:
    """An eps that is written for an optimiser of float16 parameters. (The default of Adam is a matter of R08.)"""
    given = keyword(call, "eps")
    eps = ctx.symbols.const(given, seen.function) if given is not None else _OPTIMIZERS.get(leaf)  # type: ignore[arg-type]
    if not isinstance(eps, float) or not _vanishes(eps):
        return
    sure = bool(seen.args) and seen.args[0].dtype == "fp16" and seen.args[0].sure
    halved: ast.AST | None = (seen.args[0].via or call) if sure else None
    if halved is None and given is not None:  # groups of parameters, lists of them
        trained = trained_dtype(ctx, call)
        halved = trained[1] if trained is not None and trained[0] == "fp16" else None
    if halved is not None:
        line = getattr(halved, "lineno", call.lineno)
        yield ctx.finding(
            "R09", call, WARNING,
            f"{leaf} computes in the dtype of its parameters, float16 since line {line}: eps={eps:g} rounds to 0 there, so a "
            "parameter whose gradient is 0 is divided by 0",
            "keep the parameters in float32 and run the forward pass under torch.autocast(\"cuda\", dtype=torch.float16)",
        )  # fmt: skip


def _layer(ctx: Context, seen: Seen, call: ast.Call, scope: Scope) -> Iterator[Finding]:
    if seen.region is not None and seen.region.half and seen.region.cuda:
        return
    for ref in ctx.symbols.resolve(call.func, scope):
        if isinstance(ref.expr, ast.Call):
            given = argument(ref.expr, 1, "eps")
            eps = ctx.symbols.const(given, ref.scope) if given is not None else _EPS_LAYERS[seen.name]
            if isinstance(eps, float) and _vanishes(eps):
                yield _finding(ctx, seen, call, eps, seen.args[0], default=given is None)
                return


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
    if "GroupNorm" not in ctx.text:
        return
    for call, scope in ctx.calls("torch.nn.GroupNorm"):
        eps = ctx.symbols.const(argument(call, 2, "eps"), scope)
        made = _made_half(ctx, call, scope) if _vanishes(eps) else None
        if made is not None:
            yield ctx.finding(
                "R09", call, WARNING,
                f"GroupNorm(eps={eps:g}) in a model that is made half in line {made.lineno}: the CUDA kernel "  # type: ignore[attr-defined]
                "casts eps to float16, where it is 0",
                "keep the eps that the model was trained with and leave GroupNorm in float32 (autocast does)",
            )  # fmt: skip


def _made_half(ctx: Context, layer: ast.Call, scope: Scope) -> ast.AST | None:
    """What made the module half that a layer is part of: of a class of the file, or written out in one expression."""
    cls = ctx.symbols.class_of(scope)
    if cls is not None:
        return ctx.walk.half_modules.get(cls.name)
    builders = callers(ctx.symbols, scope) if scope is not ctx.symbols.module else []
    for builder in builders:
        cls = ctx.symbols.class_of(builder)
        if cls is not None and cls.name in ctx.walk.half_modules:
            return ctx.walk.half_modules[cls.name]
    for ref, made in ctx.walk.half_calls:
        if any(node is layer for node in walk(ref.expr)):
            return made
        # ... or by the function that builds it
        if isinstance(ref.expr, ast.Call) and scope is not ctx.symbols.module and ref.scope in (scope, *builders):
            return made
    return None


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
    trigger=r"autocast|half|float16|fp16|16-mixed|16-true|precision=16|HalfTensor",
)

"""R10: the eps of a normalisation is part of the trained model."""

# ruff: noqa: E501, SIM102  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, dotted, keyword, last_name
from deploychain.audit.context import ERROR, WARNING, Context, Rule
from deploychain.audit.finding import Finding

_NORMS = frozenset(
    {
        "LayerNorm",
        "GroupNorm",
        "BatchNorm1d",
        "BatchNorm2d",
        "BatchNorm3d",
        "RMSNorm",
        "InstanceNorm2d",
        "InstanceNorm1d",
        "SyncBatchNorm",
    }
)
_NORM_FUNCTIONS = frozenset({"layer_norm", "group_norm", "batch_norm", "rms_norm", "instance_norm"})
_FINFO_FIELDS = frozenset({"eps", "tiny", "smallest_normal", "smallest_subnormal", "resolution"})


def check(ctx: Context) -> Iterator[Finding]:
    for call in ctx.symbols.calls:
        scope = ctx.symbols.scope(call)
        leaf = last_name(call.func)
        name = ctx.symbols.qual(call.func) or ""
        if (leaf in _NORMS or leaf in _NORM_FUNCTIONS) and name.startswith("torch."):
            eps = keyword(call, "eps")
            if eps is None and leaf in ("LayerNorm", "BatchNorm2d", "BatchNorm1d") and len(call.args) > 1:
                eps = call.args[1]
            if eps is not None and _finfo_half(ctx, eps, scope):
                yield _from_finfo(ctx, eps)
    for node in ctx.symbols.nodes(ast.Attribute, ast.Assign):
        if (
            isinstance(node, ast.Attribute)
            and node.attr == "smallest_subnormal"
            and _is_finfo(ctx, node.value, ctx.symbols.scope(node))
        ):
            yield ctx.finding(
                "R10", node, ERROR,
                "torch.finfo has no attribute smallest_subnormal (NumPy's has): AttributeError. And 100 times the smallest subnormal is "
                "5.96e-6, below the 1e-5 that it is meant to replace",
                "keep the eps of the model: nn.LayerNorm(dim)  # 1e-5 is safe in float16",
            )  # fmt: skip
        elif isinstance(node, ast.Assign):
            yield from _assigned(ctx, node)


def _from_finfo(ctx: Context, node: ast.expr) -> Finding:
    return ctx.finding(
        "R10", node, WARNING,
        f"the norm's eps is set from finfo(float16) (`{ctx.str(node)}`): at 6.1e-5 the output shrinks by 2.7 % for activations with "
        "std 0.03 and by 17 % at 0.01; the kernels take eps in float32, so 1e-5 never vanishes",
        "leave eps at the value that the model was trained with (1e-5 by default)",
    )  # fmt: skip


def _assigned(ctx: Context, node: ast.Assign) -> Iterator[Finding]:
    """`module.eps = ...` on normalisation modules."""
    for target in node.targets:
        if not (isinstance(target, ast.Attribute) and target.attr in ("eps", "variance_epsilon")):
            continue
        scope = ctx.symbols.scope(node)
        if isinstance(target.value, ast.Name) and target.value.id == "self":
            continue
        if _finfo_half(ctx, node.value, scope):
            yield _from_finfo(ctx, node.value)
        elif _norm_target(ctx, target.value, node, scope) and _after_checkpoint(ctx, node, scope):
            yield ctx.finding(
                "R10", node, WARNING,
                f"`{ctx.str(node)}` changes the eps of normalisation layers after weights were loaded: the model was trained with "
                "another one, and eps is safe in float16 as it is",
                "remove the assignment",
            )  # fmt: skip


def _finfo_half(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    for ref in ctx.symbols.resolve(expr, scope):
        for node in ast.walk(ref.expr):
            if (
                isinstance(node, ast.Attribute)
                and node.attr in _FINFO_FIELDS
                and _is_finfo(ctx, node.value, ref.scope, half=True)
            ):
                return True
    return False


def _is_finfo(ctx: Context, expr: ast.expr, scope: Scope, half: bool = False) -> bool:
    for ref in ctx.symbols.resolve(expr, scope):
        call = ref.expr
        if isinstance(call, ast.Call) and ctx.symbols.qual(call.func, ref.scope) == "torch.finfo":
            if not half or (call.args and ctx.amp.dtype(call.args[0], ref.scope) == "fp16"):
                return True
    return False


def _norm_target(ctx: Context, expr: ast.expr, node: ast.AST, scope: Scope) -> bool:
    """`m` in a loop over modules(), under isinstance(m, nn.LayerNorm); or an attribute called norm."""
    text = dotted(expr) or ""
    parent = ctx.symbols.parent.get(node)
    while parent is not None and not isinstance(parent, ast.FunctionDef | ast.Module):
        if isinstance(parent, ast.If):
            for inner in ast.walk(parent.test):
                if isinstance(inner, ast.Attribute | ast.Name) and last_name(inner) in _NORMS:
                    return True
        parent = ctx.symbols.parent.get(parent)
    leaf = text.rpartition(".")[2].lower()
    return "norm" in leaf or leaf.startswith("ln")


def _after_checkpoint(ctx: Context, node: ast.stmt | ast.expr, scope: Scope, depth: int = 2) -> bool:
    """Weights were loaded before, in the same function or in one that calls it."""
    if depth and isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef):
        for site in ctx.symbols.call_sites(scope):
            if _after_checkpoint(ctx, site, ctx.symbols.scope(site), depth - 1):
                return True
    for call in ctx.symbols.calls:
        if ctx.symbols.scope(call) is not scope or call.lineno >= node.lineno:
            continue
        leaf = last_name(call.func)
        if leaf in ("load_state_dict", "from_pretrained", "load_model"):
            return True
        weights = keyword(call, "pretrained", "weights")
        if weights is not None and not (isinstance(weights, ast.Constant) and weights.value in (None, False)):
            return True
    return False


RULE = Rule(
    id="R10",
    name="do-not-touch-eps",
    title="The eps of a normalisation layer is changed for float16",
    how="code, model",
    belief="Set LayerNorm's eps to finfo(float16).smallest_subnormal * 100, 'about 6.1e-5', or to finfo.tiny.",
    truth=(
        "torch.finfo has no smallest_subnormal (AttributeError), and the value would be 5.96e-6. With finfo.tiny the output of a "
        "LayerNorm shrinks: 0.3 % for std 0.1, 2.7 % for 0.03, 17 % for 0.01, 48 % for 0.003. eps=1e-5 is harmless in float16."
    ),
    experiment="LayerNorm at eps=1e-5 and at finfo(float16).tiny for four standard deviations; the missing attribute.",
    bad="norm = nn.LayerNorm(dim, eps=torch.finfo(torch.float16).tiny)",
    good="norm = nn.LayerNorm(dim)",
    check=check,
    trigger=r"finfo|\.eps\b|variance_epsilon",
)

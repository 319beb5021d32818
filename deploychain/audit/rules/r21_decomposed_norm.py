"""R21: a LayerNorm taken apart overflows in float16."""

# ruff: noqa: E501, SIM102  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, keyword, last_name
from deploychain.audit.context import WARNING, Context, Rule
from deploychain.audit.finding import Finding

_LAYER_NORM_OPSET = 17
_NORMALISED = frozenset(
    {
        "LayerNorm",
        "layer_norm",
        "TransformerEncoderLayer",
        "TransformerDecoderLayer",
        "TransformerEncoder",
        "Transformer",
    }
)


def check(ctx: Context) -> Iterator[Finding]:
    if "half" in ctx.text or "float16" in ctx.text:
        yield from _export(ctx)
        yield from _by_hand(ctx)


def _export(ctx: Context) -> Iterator[Finding]:
    """A half model with LayerNorm, exported below opset 17."""
    norm = next((c for c in ctx.symbols.calls if last_name(c.func) in _NORMALISED), None)
    if norm is None:
        return
    for seen in ctx.seen:
        call = seen.node
        if not isinstance(call, ast.Call) or seen.name != "torch.onnx.export" or not seen.args:
            continue
        opset = ctx.symbols.const(keyword(call, "opset_version"), ctx.symbols.scope(call))
        if isinstance(opset, int) and opset < _LAYER_NORM_OPSET and seen.args[0].dtype == "fp16":
            yield ctx.finding(
                "R21", call, WARNING,
                f"a float16 model with LayerNorm (line {norm.lineno}) at opset {opset}: below 17 the norm is exported as ReduceMean-Sub-Pow-"
                "ReduceMean-Add-Sqrt-Div, with casts to DOUBLE in a half export; |x - mean| > 255 overflows in Pow and the output is 0",
                "opset_version=17 (LayerNormalization), or export in float32 and keep the chain FP32 when converting",
            )  # fmt: skip


def _by_hand(ctx: Context) -> Iterator[Finding]:
    """(x - mean) / sqrt(var + eps) with var = (x - mean)**2 in a class of which an instance is made half."""
    halved = ctx.walk.half_modules
    for function in ctx.symbols.function_scopes:
        if function.name != "forward" or function.owner is None or function.owner.name not in halved:
            continue
        for node in ast.walk(function.node):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _centred(ctx, node.left, function):
                if _root_of_square(ctx, node.right, function):
                    yield ctx.finding(
                        "R21", node, WARNING,
                        f"hand-written normalisation in a model that is made half (line {halved[function.owner.name].lineno}): the "  # type: ignore[attr-defined]
                        "square overflows float16 once a value is 256 from the mean, and the output becomes 0",
                        "torch.nn.functional.layer_norm(x, x.shape[-1:])",
                    )  # fmt: skip


def _centred(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    for ref in ctx.symbols.resolve(expr, scope):
        e = ref.expr
        if isinstance(e, ast.BinOp) and isinstance(e.op, ast.Mult):
            if _centred(ctx, e.left, ref.scope) or _centred(ctx, e.right, ref.scope):
                return True
        if isinstance(e, ast.BinOp) and isinstance(e.op, ast.Sub):
            for right in ctx.symbols.resolve(e.right, ref.scope):
                if isinstance(right.expr, ast.Call) and last_name(right.expr.func) == "mean":
                    return True
    return False


def _root_of_square(ctx: Context, expr: ast.expr, scope: Scope) -> bool:
    for ref in ctx.symbols.resolve(expr, scope):
        if not any(isinstance(n, ast.Call) and last_name(n.func) in ("sqrt", "rsqrt") for n in ast.walk(ref.expr)):
            continue
        for node in ast.walk(ref.expr):
            if isinstance(node, ast.Name | ast.Attribute):
                for inner in ctx.symbols.resolve(node, ref.scope):
                    for n in ast.walk(inner.expr):
                        if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Pow):
                            return True
                        if isinstance(n, ast.Call) and last_name(n.func) in ("pow", "square"):
                            return True
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
                return True
    return False


RULE = Rule(
    id="R21",
    name="decomposed-norm",
    title="A normalisation taken apart, bound for float16",
    how="code, graph",
    belief="LayerNorm must be rewritten or its eps raised for float16.",
    truth=(
        "The fused kernel is safe. The decomposed chain in strict float16 is not: |x - mean| > 255 makes Pow inf and the output all "
        "zeros (at std 100: 100 %), and eps 1e-8 on a constant row gives NaN. Opset 17 has LayerNormalization."
    ),
    experiment="LayerNorm as a kernel and as a chain of float16 ops at std 100.",
    bad='torch.onnx.export(model.half(), x, "m.onnx", opset_version=13)',
    good='torch.onnx.export(model, x, "m.onnx", opset_version=17, dynamo=False)  # then convert with pinned norms',
    check=check,
    trigger=r"\.half\b|float16",
)

"""R22: values that float16 cannot hold."""

# ruff: noqa: E501, SIM102  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, argument, keyword, last_name
from deploychain.audit.context import ERROR, WARNING, Context, Rule
from deploychain.audit.finding import Finding
from deploychain.audit.rules.half_graphs import made_half

FP16_MAX = 65504.0


# Where the value is among the arguments of the method; the function has the tensor before it.
_FILLS = {
    "masked_fill": 1,
    "masked_fill_": 1,
    "fill_": 0,
    "index_fill": 2,
    "index_fill_": 2,
    "new_full": 1,
    "full_like": 0,
    "pad": 2,
}


def check(ctx: Context) -> Iterator[Finding]:
    yield from _constants(ctx)
    yield from made_half(ctx)


def _number(ctx: Context, expr: ast.expr | None, scope: Scope) -> float | None:
    """A number; `torch.finfo(torch.float32).min` is one."""
    if expr is None:
        return None
    value = ctx.symbols.const(expr, scope)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    for ref in ctx.symbols.resolve(expr, scope):
        if (
            isinstance(ref.expr, ast.Attribute)
            and ref.expr.attr in ("min", "max")
            and isinstance(ref.expr.value, ast.Call)
        ):
            info = ref.expr.value
            if (
                last_name(info.func) == "finfo"
                and info.args
                and (ctx.symbols.qual(info.args[0]) or "").endswith("float32")
            ):
                return -3.4028e38 if ref.expr.attr == "min" else 3.4028e38
    return None


def _too_big(value: float | None) -> bool:
    return value is not None and FP16_MAX < abs(value) < float("inf")


def _constants(ctx: Context) -> Iterator[Finding]:
    """scores.masked_fill(mask, -1e9) on a float16 tensor."""
    done: set[int] = set()
    for made, home in ctx.calls("torch.full"):
        dtype, fill = keyword(made, "dtype"), _number(ctx, argument(made, 1, "fill_value"), home)
        if dtype is not None and _too_big(fill) and ctx.amp.dtype(dtype, home) == "fp16":
            yield _does_not_fit(ctx, made, fill, "the new tensor")
    for seen in ctx.seen:
        call = seen.node
        if seen.name == "torch.full" and isinstance(call, ast.Call) and seen.result.dtype == "fp16":
            fill = _number(ctx, argument(call, 1, "fill_value"), ctx.symbols.scope(call))
            if _too_big(fill):
                yield _does_not_fit(ctx, call, fill, "the new tensor")
        scope: Scope = seen.function  # type: ignore[assignment]
        if id(call) in done or not seen.args:
            continue
        value = seen.args[0]
        if isinstance(call, ast.Call) and (leaf := seen.name.rpartition(".")[2]) in _FILLS:
            if value.dtype != "fp16" or value.module:
                continue
            given = (
                keyword(call, "value")
                if leaf == "pad"
                else argument(call, _FILLS[leaf] + seen.name.startswith("torch."), "value", "fill_value")
            )
            fill = _number(ctx, given, scope)
            if _too_big(fill):
                done.add(id(call))
                method = isinstance(call.func, ast.Attribute) and not seen.name.startswith("torch.")
                yield _does_not_fit(ctx, call, fill, f"`{ctx.str(call.func.value)}`" if method else "the tensor")  # type: ignore[attr-defined]
        elif isinstance(call, ast.BinOp) and seen.name in ("+", "-", "*"):
            for number, tensor in ((call.right, seen.args[0]), (call.left, seen.args[1])):
                constant = _number(ctx, number, scope)
                if _too_big(constant):
                    if tensor.dtype == "fp16" and tensor.sure and not tensor.module:
                        done.add(id(call))
                        yield ctx.finding(
                            "R22", call, WARNING,
                            f"{constant:g} is beyond float16's 65504, and the other operand is float16: the result is inf (or NaN where it is "
                            "multiplied by 0)",
                            "use torch.finfo(x.dtype).min as the mask value, or do this in float32",
                        )  # fmt: skip


def _does_not_fit(ctx: Context, call: ast.Call, fill: float | None, tensor: str) -> Finding:
    return ctx.finding(
        "R22", call, ERROR,
        f"{fill:g} does not fit into float16 (maximum 65504), and {tensor} is float16 here: "
        "RuntimeError \"value cannot be converted to type Half without overflow\"",
        "masked_fill(mask, torch.finfo(scores.dtype).min), or float(\"-inf\")",
    )  # fmt: skip


RULE = Rule(
    id="R22",
    name="fp16-range",
    title="Values outside of float16's range",
    how="graph, code, run",
    belief="Everything below 6.1e-5 underflows; min() < 6.1e-5 shows it.",
    truth=(
        "float16 has subnormals down to 5.96e-8; values up to 2^-25 = 2.98e-8 round to 0, 65520 and more to inf. ONNX Runtime on CPU "
        "hides both (it casts to FP32 around FP16 ops), so the range must be measured in FP32 on calibration data, on every "
        "intermediate tensor."
    ),
    experiment="The edges of float16; masked_fill(-1e9); a chain that onnxruntime hides and the range analysis finds.",
    bad="scores = scores.masked_fill(mask == 0, -1e9)  # scores is float16 under autocast",
    good="scores = scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)",
    check=check,
    trigger=r"autocast|half|[fF]loat16|fp16|convert_to_|fp-to-fp16|OnnxFloatTo|ConvertToFp16|AutoOptimizationConfig",
)

"""R22: values that float16 cannot hold."""

# ruff: noqa: E501, SIM102  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import UNKNOWN, Scope, argument, keyword, last_name
from deploychain.audit.context import ERROR, WARNING, Context, Rule
from deploychain.audit.finding import Finding

FP16_MAX = 65504.0


def check(ctx: Context) -> Iterator[Finding]:
    yield from _constants(ctx)
    yield from _conversions(ctx)


def _constants(ctx: Context) -> Iterator[Finding]:
    """scores.masked_fill(mask, -1e9) on a float16 tensor."""
    done: set[int] = set()
    for seen in ctx.seen:
        call = seen.node
        scope: Scope = seen.function  # type: ignore[assignment]
        if id(call) in done or not seen.args:
            continue
        value = seen.args[0]
        if isinstance(call, ast.Call) and seen.name.rpartition(".")[2] in ("masked_fill", "masked_fill_"):
            if value.dtype != "fp16" or value.module:
                continue
            method = not seen.name.startswith("torch.")
            fill = ctx.symbols.const(argument(call, 1 if method else 2, "value"), scope)
            if isinstance(fill, int | float) and FP16_MAX < abs(fill) < float("inf"):
                done.add(id(call))
                yield ctx.finding(
                    "R22", call, ERROR,
                    f"{fill:g} does not fit into float16 (maximum 65504), and `{ctx.str(seen.node.func.value) if isinstance(call.func, ast.Attribute) else 'the tensor'}` is float16 here: "  # type: ignore[attr-defined]
                    "RuntimeError \"value cannot be converted to type Half without overflow\"",
                    "masked_fill(mask, torch.finfo(scores.dtype).min), or float(\"-inf\")",
                )  # fmt: skip
        elif isinstance(call, ast.BinOp) and seen.name in ("+", "-", "*"):
            for number, tensor in ((call.right, seen.args[0]), (call.left, seen.args[1])):
                constant = ctx.symbols.const(number, scope)
                if (
                    isinstance(constant, int | float)
                    and not isinstance(constant, bool)
                    and FP16_MAX < abs(constant) < float("inf")
                ):
                    if tensor.dtype == "fp16" and tensor.sure and not tensor.module:
                        done.add(id(call))
                        yield ctx.finding(
                            "R22", call, WARNING,
                            f"{constant:g} is beyond float16's 65504, and the other operand is float16: the result is inf (or NaN where it is "
                            "multiplied by 0)",
                            "use torch.finfo(x.dtype).min as the mask value, or do this in float32",
                        )  # fmt: skip


def _conversions(ctx: Context) -> Iterator[Finding]:
    """Whole-graph FP16 conversion without looking at the values."""
    for call in ctx.symbols.calls:
        leaf = (ctx.symbols.qual(call.func) or last_name(call.func)).rpartition(".")[2]
        scope = ctx.symbols.scope(call)
        if leaf in ("convert_float_to_float16", "convert_float_to_float16_model_path"):
            blocked = keyword(call, "op_block_list", "node_block_list")
            if blocked is None:
                yield ctx.finding(
                    "R22", call, WARNING,
                    "the whole graph is converted to FP16 without looking at the values: tensors beyond 65504 become inf, constants up to "
                    "2.98e-8 become 0",
                    "deploychain plan (range analysis on calibration data), or modelopt.onnx.autocast.convert_to_mixed_precision(..., "
                    "calibration_data=...)",
                )  # fmt: skip
        elif leaf == "convert_to_mixed_precision":
            data = keyword(call, "calibration_data")
            if (
                data is None
                and not any(k.arg is None for k in call.keywords)
                and ctx.symbols.const(data, scope) is UNKNOWN
            ):
                yield ctx.finding(
                    "R22", call, WARNING,
                    "AutoCast without calibration data puts even a decomposed LayerNorm into FP16, where it overflows",
                    "convert_to_mixed_precision(..., calibration_data=\"calibration.npz\")",
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
    trigger=r"convert_float_to_float16|convert_to_mixed_precision|autocast|half|float16",
)

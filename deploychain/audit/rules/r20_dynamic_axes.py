"""R20: dynamic_axes speaks of names, so the names must be given."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
from collections.abc import Iterator

from deploychain.audit.astnames import UNKNOWN, Scope, keyword
from deploychain.audit.context import ERROR, Context, Rule
from deploychain.audit.finding import Finding


def check(ctx: Context) -> Iterator[Finding]:
    for call, scope in ctx.calls("torch.onnx.export", "torch.onnx.utils.export"):
        axes = keyword(call, "dynamic_axes")
        if (
            axes is None
            or any(k.arg is None for k in call.keywords)
            or any(isinstance(a, ast.Starred) for a in call.args)
        ):
            continue
        if isinstance(axes, ast.Constant) and axes.value is None:
            continue
        inputs, outputs = keyword(call, "input_names"), keyword(call, "output_names")
        if inputs is None and outputs is None:
            if len(call.args) > 6:
                continue  # given by position
            yield ctx.finding(
                "R20", call, ERROR,
                "dynamic_axes without input_names and output_names: the TorchScript exporter ignores it (the batch stays fixed), the dynamo "
                "exporter raises",
                'torch.onnx.export(..., input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})',
            )  # fmt: skip
            continue
        keys, names = _keys(ctx, axes, scope), _names(ctx, inputs, scope)
        more = _names(ctx, outputs, scope)
        if keys is None or names is None or more is None:
            continue
        unknown = [k for k in keys if k not in names + more]
        if unknown:
            yield ctx.finding(
                "R20", axes, ERROR,
                f"dynamic_axes names {', '.join(map(repr, unknown))}, which is no input or output name ({', '.join(names + more)}): the axis "
                "stays fixed",
                f"use one of {', '.join(map(repr, names + more))}",
            )  # fmt: skip


def _keys(ctx: Context, expr: ast.expr, scope: Scope) -> list[str] | None:
    """The keys of the one dictionary that it may be; `AXES if dynamic else None` is one."""
    refs = [
        r for r in ctx.symbols.resolve(expr, scope) if not (isinstance(r.expr, ast.Constant) and r.expr.value is None)
    ]
    if len(refs) != 1 or not isinstance(refs[0].expr, ast.Dict):
        return None
    keys = [ctx.symbols.const(k, refs[0].scope) for k in refs[0].expr.keys]
    return keys if all(isinstance(k, str) for k in keys) else None


def _names(ctx: Context, expr: ast.expr | None, scope: Scope) -> list[str] | None:
    if expr is None:
        return []
    refs = ctx.symbols.resolve(expr, scope)
    if len(refs) != 1:
        return None
    value = ctx.symbols.const(refs[0].expr, refs[0].scope)
    if value is UNKNOWN or not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        return None
    return value


RULE = Rule(
    id="R20",
    name="dynamic-axes",
    title="dynamic_axes does not match the input and output names",
    how="code, graph",
    belief="dynamic_axes={'input': {0: 'batch'}} makes the batch dynamic.",
    truth="Only with input_names and output_names. Without them the TorchScript exporter ignores it and the dynamo exporter raises.",
    experiment="Export with dynamic_axes and no names; the shape in the file.",
    bad='torch.onnx.export(model, x, "m.onnx", dynamic_axes={"input": {0: "batch"}})',
    good='torch.onnx.export(model, x, "m.onnx", input_names=["input"], output_names=["y"], dynamic_axes={"input": {0: "batch"}})',
    check=check,
    trigger=r"dynamic_axes",
)

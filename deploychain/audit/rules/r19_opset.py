"""R19: the opset in the file is what counts, not the argument."""

# ruff: noqa: E501  (messages are one piece of text; nested tests read as patterns)
from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deploychain.audit.astnames import Scope, keyword
from deploychain.audit.context import NOTE, WARNING, Context, Rule
from deploychain.audit.finding import Finding

DYNAMO_LOWEST = 18
_CHECKS = re.compile(r"opset_import|checker\.check_model|InferenceSession|convert_version|onnx\.load")


def check(ctx: Context) -> Iterator[Finding]:
    for call, scope in ctx.calls("torch.onnx.export"):
        opset = ctx.symbols.const(keyword(call, "opset_version"), scope)
        if not isinstance(opset, int) or isinstance(opset, bool) or opset >= DYNAMO_LOWEST:
            continue
        given = keyword(call, "dynamo")
        dynamo = ctx.symbols.const(given, scope) if given is not None else None
        if dynamo is False:
            continue
        if dynamo is True or _exported_program(ctx, call, scope):
            yield ctx.finding(
                "R19", call, WARNING,
                f"the dynamo exporter only tries to go below opset 18: with opset_version={opset} the file can stay at 18 (mean, pad, "
                "normalize) or be invalid (split, chunk), both without an exception",
                f"torch.onnx.export(..., opset_version=18, dynamo=True); where {opset} is needed: dynamo=False, then check the file",
            )  # fmt: skip
        elif given is None and not any(k.arg is None for k in call.keywords) and not _CHECKS.search(ctx.text):
            yield ctx.finding(
                "R19", call, NOTE,
                f"from torch 2.9 on this call uses the dynamo exporter, which may leave the file at opset 18 in spite of "
                f"opset_version={opset}, and nothing here looks at the file",
                f"torch.onnx.export(..., opset_version={opset}, dynamo=False), then onnx.checker.check_model(path, full_check=True)",
            )  # fmt: skip


def _exported_program(ctx: Context, call: ast.Call, scope: Scope) -> bool:
    if not call.args:
        return False
    return any(
        isinstance(r.expr, ast.Call) and (ctx.symbols.qual(r.expr.func, r.scope) or "") == "torch.export.export"
        for r in ctx.symbols.resolve(call.args[0], scope)
    )


RULE = Rule(
    id="R19",
    name="opset-contract",
    title="The opset in the file is not the one that was asked for",
    how="code, graph, log",
    belief="opset_version=17 gives an opset 17 file; opset 11 has no FP16.",
    truth=(
        "The dynamo exporter (default since torch 2.9) stays at 18 for mean, pad and normalize, and writes an invalid file for split "
        "and chunk, without raising. Half models at opset 9, 11 and 13 export and run; the real reasons for 17 are "
        "LayerNormalization (17) and GridSample (16)."
    ),
    experiment="Export of x.mean(-1) with dynamo and opset 17, and the opset in the file.",
    bad='torch.onnx.export(model, x, "m.onnx", opset_version=17, dynamo=True)',
    good='torch.onnx.export(model, x, "m.onnx", opset_version=17, dynamo=False)\nonnx.checker.check_model("m.onnx", full_check=True)',
    check=check,
    trigger=r"onnx\.export|onnx import export",
)

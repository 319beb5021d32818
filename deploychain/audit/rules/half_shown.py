"""What R11 may say of a file: which half type it shows, and how bad an overflow is there.

A formula overflows at 11.1 in float16 and at 88.7 in float32 and bfloat16. Without half precision in the file, or where the
code itself makes the value float32, it takes float32's range to see it: a note.
"""

# ruff: noqa: E501  (messages are one piece of text)
from __future__ import annotations

import ast
import re

from deploychain.audit.astnames import Scope
from deploychain.audit.bounds import written_float32
from deploychain.audit.context import NOTE, WARNING, Context
from deploychain.audit.finding import Severity

_FLOAT16 = re.compile(
    r"(?<!b)float16|fp16|\.half\(|GradScaler|grad_scaler|HalfTensor|torch\.half\b|16-mixed|16-true|precision=16|autocast\(\s*\)|autocast\([\"']cuda[\"']\)"
)
_ANY = re.compile(_FLOAT16.pattern + r"|autocast|bfloat16|bf16|mixed_precision|(?<![A-Za-z])amp(?![A-Za-z])")
_BF16 = re.compile(r"bfloat16|bf16")


def kind(ctx: Context) -> str:
    """ "float16" (or a half type that is not told), "bfloat16", or "" of a file that shows no half precision."""
    if not ctx.says(_ANY):
        return ""
    return "bfloat16" if ctx.says(_BF16) and not ctx.says(_FLOAT16) else "float16"


def severity(ctx: Context, of: ast.expr, scope: Scope) -> Severity:
    """A warning where the file shows float16 and does not cast this value to float32."""
    return WARNING if kind(ctx) == "float16" and not written_float32(ctx, of, scope) else NOTE


def overflow(ctx: Context, of: ast.expr, scope: Scope) -> str:
    """ "overflows from x > ...", as far as the file tells the dtype."""
    x = ctx.str(of)
    if written_float32(ctx, of, scope):
        return f"overflows from {x} > 88.7 in float32, which it is here"
    if kind(ctx) == "bfloat16":
        return f"overflows from {x} > 88.7 in bfloat16 and float32"
    if not kind(ctx):
        return f"overflows from {x} > 88.7 in float32, and from 11.1 once the model is made float16"
    return f"overflows from {x} > 11.1 in float16 and > 88.7 in float32 (CUDA autocast runs exp in float32)"

"""Numeric precisions and the one table of the spellings that other tools use for them."""

from __future__ import annotations

import re
from enum import Enum


class Precision(str, Enum):
    """A number format, or for TF32 a way to compute on FP32 storage."""

    FP64 = "fp64"
    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    FP4 = "fp4"
    INT8 = "int8"
    INT4 = "int4"
    INT64 = "int64"
    INT32 = "int32"
    UINT8 = "uint8"
    BOOL = "bool"

    def __str__(self) -> str:
        return self.value

    @property
    def is_float(self) -> bool:
        return self in _MANTISSA_BITS

    @property
    def is_index(self) -> bool:
        """Types that carry indices, shapes and masks: never a fallback."""
        return self in (Precision.INT64, Precision.INT32, Precision.BOOL, Precision.UINT8)

    @property
    def rank(self) -> int:
        """Order by how much a value can lose: higher is more precise (fp32 > tf32 > fp16 > bf16 > ...)."""
        return _RANK[self]


# Explicit mantissa bits; formats in the order of precision for values in range.
_MANTISSA_BITS = {
    Precision.FP64: 52,
    Precision.FP32: 23,
    Precision.TF32: 10,
    Precision.FP16: 10,
    Precision.BF16: 7,
    Precision.FP8: 3,
    Precision.FP4: 1,
}
_RANK = {
    Precision.FP64: 100,
    Precision.FP32: 90,
    Precision.TF32: 80,
    Precision.FP16: 70,
    Precision.BF16: 60,
    Precision.FP8: 50,
    Precision.INT8: 45,
    Precision.UINT8: 44,
    Precision.FP4: 30,
    Precision.INT4: 25,
    Precision.INT64: 0,
    Precision.INT32: 0,
    Precision.BOOL: 0,
}

# Order matters: BF16 before Float, FP16/Half before FP32/Float. A word is searched anywhere in the text
# because TensorRT prints "Row major linear FP16 format" as well as "Half".
_WORDS: tuple[tuple[re.Pattern[str], Precision], ...] = tuple(
    (re.compile(rf"(?<![a-z0-9])(?:{pattern})(?![a-z0-9])", re.IGNORECASE), precision)
    for pattern, precision in (
        (r"bfloat16|bf16|kbf16", Precision.BF16),
        (r"float64|fp64|double", Precision.FP64),
        (r"half|float16|fp16|khalf|f16", Precision.FP16),
        (r"fp8|float8\w*|f8e4m3\w*|f8e5m2\w*|e4m3|e5m2|kfp8|fp8e4m3", Precision.FP8),
        (r"fp4|float4\w*|e2m1|kfp4", Precision.FP4),
        (r"tf32", Precision.TF32),
        (r"float32|fp32|float|kfloat|f32", Precision.FP32),
        (r"uint8|kuint8", Precision.UINT8),
        (r"int8|kint8|i8", Precision.INT8),
        (r"int4|kint4|i4", Precision.INT4),
        (r"int64|kint64|long|i64", Precision.INT64),
        (r"int32|kint32|i32|int", Precision.INT32),
        (r"bool|kbool", Precision.BOOL),
    )
)


def parse_precision(text: str) -> Precision | None:
    """Read a precision from any tool's spelling: ``Half``, ``torch.float16``, ``Row major linear FP16 format``.

    Returns None where the text names none (``N/A due to dynamic shapes``, ``None``, an empty string): unknown
    is never guessed.
    """
    if not text or text.lstrip().upper().startswith("N/A"):
        return None
    for pattern, precision in _WORDS:
        if pattern.search(text):
            return precision
    return None

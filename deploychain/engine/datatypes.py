"""Precisions as TensorRT prints them: tensor formats, tactic (kernel) names, and the words of a Myelin kernel name."""

from __future__ import annotations

import re
from functools import lru_cache

from deploychain.precision import Precision, parse_precision


@lru_cache(maxsize=4096)
def tensor_precision(text: str) -> Precision | None:
    """The type of a tensor from its ``Format/Datatype``, ``Datatype`` or ``Format`` text.

    Both the long form (``Channel major FP16 format where channel % 8 == 0``) and the short one (``Half``).
    None for ``N/A due to dynamic shapes``, ``None`` and words that name no type.
    """
    return parse_precision(text)


# The order is the rule. An `int8x4` kernel may be named after its FP32 output (`ampere_fp32_icudnn_int8x4_...`),
# `fp16_s1688` and `s1688gemm_f16` (Turing) accumulate FP16 products in FP32 while a bare `s1688` is TF32, and
# `f16f16_f32_f32` is FP16 with FP32 accumulation. `sm50_` and `sm80_` name the oldest GPU that a kernel runs on: no
# evidence at all.
_TACTIC_WORDS: tuple[tuple[re.Pattern[str], Precision], ...] = tuple(
    (re.compile(pattern), precision)
    for pattern, precision in (
        (r"e4m3|e5m2|fp8|f8f8", Precision.FP8),
        (r"nvf4|e2m1|fp4", Precision.FP4),
        (r"bf16|bfloat16", Precision.BF16),
        (r"i8i8|i8i32|imma|int8|i8816|i16832", Precision.INT8),
        (r"fp16_s\d+|f16_s\d+|s1688gemm_fp?16", Precision.FP16),
        (r"tf32|s1688", Precision.TF32),
        (r"f16f16|h884|h1688|h16816|hmma|fp16fp16|fp16fp32|hgemm|(?<![a-z0-9])fp16", Precision.FP16),
        (r"f32f32|sgemm|ffma|scudnn|(?<![a-z0-9])fp32", Precision.FP32),
    )
)
_SAYS_NOTHING = ("__myl", "__myelin", "cutlass_stub")


@lru_cache(maxsize=4096)
def tactic_precision(name: str) -> Precision | None:
    """What a kernel's name says about the type of its products; None where it says nothing."""
    lower = name.lower()
    if not lower or lower.startswith(_SAYS_NOTHING):
        return None
    for pattern, precision in _TACTIC_WORDS:
        if pattern.search(lower):
            return precision
    return None


_MYELIN_NAME = re.compile(r"__myl_([A-Za-z]+)(?:_|$)")
_MYELIN_WORD = re.compile(r"[A-Z][a-z0-9]*")


@lru_cache(maxsize=4096)
def kernel_words(name: str) -> tuple[str, ...]:
    """The operations in a generated kernel's name: ``__myl_CastMulAddCast_myl0_3`` gives Cast, Mul, Add, Cast.

    Myelin cuts each word to three (TensorRT 10.0 to 10.13) or four letters (10.14 on, TensorRT-RTX).
    """
    found = _MYELIN_NAME.match(name)
    return tuple(_MYELIN_WORD.findall(found.group(1))) if found else ()


CAST_WORDS = frozenset({"Cast", "Cas"})
# Words of kernels that move values and compute none. "Con" is left out: it may be Conv.
MOVE_WORDS = frozenset(
    [
        "Resh",
        "Res",
        "Tran",
        "Tra",
        "Move",
        "Mov",
        "Repl",
        "Rep",
        "Conc",
        "Slic",
        "Sli",
        "Unsq",
        "Uns",
        "Sque",
        "Squ",
        "Expa",
        "Copy",
        "Cop",
        "Tile",
        "Til",
        "Padd",
        "Pad",
        "Spli",
        "Spl",
        "Broa",
        "Bro",
        "Shuf",
        "Shu",
        "Gath",
        "Gat",
    ]
)
MATRIX_WORDS = frozenset({"Corr", "Fc", "Gemm", "Gem", "Conv", "Deco", "Mha", "Matm", "Bmm"})

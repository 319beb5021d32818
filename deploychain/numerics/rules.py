"""The thresholds of a plan, and what its user set."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field

from deploychain.numerics.nodes import DATA_MOVEMENT
from deploychain.numerics.range import FP16_MAX

# A node whose own result, computed from rounded inputs and rounded once, is further than this from FP32's.
LOCAL_SNR_ERROR_DB = 20.0
LOCAL_SNR_WARNING_DB = {"fp16": 40.0, "bf16": 24.0}  # about 74 and 56 dB are usual
SMOOTH_GRID_DB = 60.0  # sampling a smooth map forgives coarse coordinates
GRID_SIDE = 256  # pixels: beyond, an FP16 grid coordinate is off by more than 0.03 pixel
NEAR_MAX = 16384.0  # a quarter of FP16's largest value
EXP_MAX = 11.09  # exp of more is over 65504
LONG_SUM = 2048  # addends: from here on an FP16 running sum of ones stands still
SUMS = frozenset(("CumSum", "ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"))
GRID_OPS = DATA_MOVEMENT | {"Add", "Sub", "Mul", "Div", "Resize", "Clip", "Where", "Cast", "Neg"}


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of a decision."""

    low: str = "fp16"
    data_max: float = 512.0
    init_max: float = FP16_MAX
    pins: Mapping[str, str] = field(default_factory=dict)  # node name pattern -> precision
    judge_local: bool = True
    feed_depth: int = 1  # how many computing nodes before a sensitive one stay FP32 as well

    def pinned(self, name: str) -> tuple[str, str] | None:
        """(pattern, precision) of the last pin that matches; later pins win, as in a .gitignore."""
        found = None
        for pattern, precision in self.pins.items():
            if fnmatch.fnmatchcase(name, pattern):
                found = (pattern, precision)
        return found

"""Checks of FP32 master weights: what would break in FP16, and signs that they are no masters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from deploychain.backends.torch_model import State

REPORT_SCHEMA = "deploychain.weights/1"
FP16_MAX = 65504.0  # largest finite FP16 value
FP16_VANISH = 2.0**-25  # FP16 rounds this and anything smaller to zero (half of the smallest subnormal, 2**-24)


def non_finite(state: Mapping[str, torch.Tensor]) -> list[str]:
    """Names of tensors that hold NaN or infinite values."""
    return [n for n, v in state.items() if v.is_floating_point() and not bool(torch.isfinite(v).all())]


def to_fp32(state: Mapping[str, torch.Tensor]) -> tuple[State, dict[str, list[str]]]:
    """Floating-point tensors as FP32, others as they are; and the names of those that were not FP32, by dtype."""
    made: State = {}
    converted: dict[str, list[str]] = defaultdict(list)
    for name, value in state.items():
        if value.is_floating_point() and value.dtype != torch.float32:
            converted[str(value.dtype).removeprefix("torch.")].append(name)
            value = value.float()
        made[name] = value
    return made, dict(converted)


def rounded_to(state: Mapping[str, torch.Tensor], names: list[str]) -> str | None:
    """The half format in which every one of these tensors is exact, or None.

    Trained FP32 weights use their low mantissa bits: that all of them are exact in a half format means that they went
    through it. Tensors of a single value (zeros, ones) say nothing and are left out.
    """
    telling = [v for v in map(state.__getitem__, names) if v.numel() > 1 and bool((v != v.flatten()[0]).any())]
    if not telling:
        return None
    for dtype, name in ((torch.bfloat16, "bfloat16"), (torch.float16, "float16")):
        if all(torch.equal(v, v.to(dtype).float()) for v in telling):
            return name
    return None


def shared_tensors(model: nn.Module) -> list[list[str]]:
    """Groups of names that are one tensor (tied weights)."""
    groups: dict[int, list[str]] = defaultdict(list)
    for name, value in model.state_dict(keep_vars=True).items():
        groups[id(value)].append(name)
    return [names for names in groups.values() if len(names) > 1]


def weights_report(model: nn.Module, state: State, origin: str) -> dict[str, Any]:
    """What the checks found, as JSON types.

    Args:
        model: the task's model, for its module types.
        state: FP32 weights and buffers by name.
        origin: where they come from.
    """
    trained = [n for n, _ in model.named_parameters() if n in state]
    variances = {
        f"{module_name}.running_var" if module_name else "running_var": module.running_var
        for module_name, module in model.named_modules()
        if isinstance(module, _NormBase) and module.running_var is not None
    }
    overflow, vanish = [], []
    for name in variances:
        value = state[name]
        if bool((value > FP16_MAX).any()):
            overflow.append({"name": name, "max": float(value.max()), "channels": int((value > FP16_MAX).sum())})
        lost = (value > 0) & (value <= FP16_VANISH)  # an exact zero stays what it is
        if bool(lost.any()):
            vanish.append({"name": name, "min": float(value[lost].min()), "channels": int(lost.sum())})
    large = [n for n in trained if bool((state[n].abs() > FP16_MAX).any())]
    return {
        "schema": REPORT_SCHEMA,
        "origin": origin,
        "tensors": len(state),
        "parameters": sum(state[n].numel() for n in trained),
        "largest_weight": max((float(state[n].abs().max()) for n in trained if state[n].numel()), default=None),
        "rounded_masters": rounded_to(state, trained),
        "batchnorm_overflow": overflow,
        "batchnorm_vanish": vanish,
        "weights_overflow": large,
        "shared": shared_tensors(model),
    }

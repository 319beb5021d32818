"""The 28 rules, one module each."""

from __future__ import annotations

from importlib import import_module

from deploychain.audit.context import Rule

_MODULES = (
    "r01_loss_fp32", "r02_scaled_backward", "r03_zero_grad", "r04_skip_detect", "r05_scale_health",
    "r06_growth_interval", "r07_unscale_before_clip", "r08_half_params", "r09_vanishing_eps", "r10_norm_eps",
    "r11_unstable_formula", "r12_bce", "r13_custom_op", "r14_stale_api", "r15_normalize", "r16_alpha_dropout",
    "r17_scaler_sharding", "r18_finite_probe", "r19_opset", "r20_dynamic_axes", "r21_decomposed_norm", "r22_fp16_range",
    "r23_grid", "r24_engine", "r25_rounded_master", "r26_half_buffers", "r27_autocast_active", "r28_scaler_protocol",
)  # fmt: skip


def load_rules() -> dict[str, Rule]:
    """Every rule by its id, in order."""
    rules = [import_module(f"{__name__}.{name}").RULE for name in _MODULES]
    return {rule.id: rule for rule in rules}

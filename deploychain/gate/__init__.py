"""The precision-regression gate: limits, baseline, noise, verdict. It decides and measures nothing.

Names are resolved when they are first used: a run checks its limits before it trains, and needs no numpy for that.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deploychain.gate.acceptance import accept
    from deploychain.gate.baseline import Baseline
    from deploychain.gate.judgement import judge
    from deploychain.gate.limits import GateLimits, load_limits, parse_limits
    from deploychain.verdicts import Check, GateResult, Status, Verdict

__all__ = [
    "Baseline",
    "Check",
    "GateLimits",
    "GateResult",
    "Status",
    "Verdict",
    "accept",
    "judge",
    "load_limits",
    "parse_limits",
]

_HOMES = {
    "accept": "deploychain.gate.acceptance",
    "Baseline": "deploychain.gate.baseline",
    "judge": "deploychain.gate.judgement",
    **dict.fromkeys(("GateLimits", "load_limits", "parse_limits"), "deploychain.gate.limits"),
    **dict.fromkeys(("Check", "GateResult", "Status", "Verdict"), "deploychain.verdicts"),
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'deploychain.gate' has no attribute {name!r}")
    return getattr(import_module(home), name)

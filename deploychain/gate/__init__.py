"""The precision-regression gate: limits, baseline, noise, verdict. It decides and measures nothing."""

from deploychain.gate.baseline import Baseline, accept
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

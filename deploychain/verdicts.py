"""What a gate decided: the records that travel from the gate to the reports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal

from deploychain.records import GATE_SCHEMA, to_json


class Status(str, Enum):
    """What became of one check."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    INCOMPLETE = "incomplete"  # the evidence is missing
    NOT_COMPARABLE = "not-comparable"  # the baseline is missing, damaged, or measured with something else
    WAIVED = "waived"
    NOTE = "note"  # said, not judged


class Verdict(str, Enum):
    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    INCOMPLETE = "incomplete"
    NOT_COMPARABLE = "not-comparable"


EXIT_CODES = {
    Verdict.PASS: 0,
    Verdict.FAIL: 1,
    Verdict.NOT_COMPARABLE: 3,
    Verdict.INCOMPLETE: 4,
    Verdict.INCONCLUSIVE: 5,
}
# The worst first: a proven regression is the most that can be said; then what made a comparison impossible.
_ORDER = (Status.FAIL, Status.NOT_COMPARABLE, Status.INCOMPLETE, Status.INCONCLUSIVE, Status.WAIVED, Status.NOTE)


@dataclass(frozen=True, slots=True)
class Check:
    """One question that the gate asked, and its answer.

    ``value``, ``baseline`` and ``limit`` are in the terms of ``kind`` (per cent kept, metric units, layers, ms);
    ``low``, ``high`` and ``margin`` bound the *loss* that the decision rule looked at.
    """

    stage: str
    kind: str
    status: Status
    message: str
    metric: str = ""
    node: str = ""
    module: str = ""
    value: float | None = None
    baseline: float | None = None
    limit: float | None = None
    severity: Literal["error", "warning"] = "error"
    loss: float | None = None
    low: float | None = None
    high: float | None = None
    margin: float | None = None
    needed: int | None = None  # more samples or repeats that would settle it
    how: str = ""
    rule: tuple[str | int, ...] = ()  # where the limit stands: ("accuracy", 0, "retention")
    source: str = ""  # file:line of the module's code
    look: str = ""  # the command that looks deeper

    @property
    def level(self) -> str:
        """error, warning or note: how the outputs show it."""
        if self.status in (Status.PASS, Status.WAIVED, Status.NOTE):
            return "note"
        return "warning" if self.severity == "warning" else "error"

    def finding(self) -> dict[str, Any]:
        """The form of the documented JSON."""
        text = self.message if self.status is Status.FAIL else f"{self.status.value}: {self.message}"
        record = {
            "stage": self.stage,
            "metric": self.metric or None,
            "kind": self.kind,
            "node": self.node or None,
            "module": self.module or None,
            "value": self.value,
            "baseline": self.baseline,
            "limit": self.limit,
            "severity": self.level,
            "message": f"{text} [{self.look}]" if self.look else text,
        }
        return {key: to_json(value) for key, value in record.items()}


@dataclass(frozen=True, slots=True)
class Change:
    """One value that an acceptance changed; None where it appeared or disappeared."""

    name: str  # "engine-int8/top1"
    old: float | None
    new: float | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One accepted change."""

    date: str  # ISO 8601, UTC
    author: str
    reason: str
    values: Mapping[str, float | None]
    changes: tuple[Change, ...] = ()
    tensorrt: str | None = None
    device: str = ""


@dataclass(frozen=True, slots=True)
class GateResult:
    """The verdict and everything that led to it."""

    verdict: Verdict
    checks: tuple[Check, ...]
    on_inconclusive: Literal["fail", "warn"] = "fail"
    changes: tuple[str, ...] = ()  # what differs from the baseline and may: versions, expected changes
    baseline_path: str = ""
    baseline_created: str = ""
    history: tuple[Entry, ...] = ()  # accepted baselines, for plots

    @property
    def exit_code(self) -> int:
        if self.verdict is Verdict.INCONCLUSIVE and self.on_inconclusive == "warn":
            return 0
        return EXIT_CODES[self.verdict]

    @property
    def findings(self) -> tuple[Check, ...]:
        """Every check that is not a plain pass, the worst first."""
        found = [c for c in self.checks if c.status is not Status.PASS]
        return tuple(sorted(found, key=_worst_first))

    def to_dict(self) -> dict[str, Any]:
        """The documented JSON of ``deploychain gate --json``."""
        return {
            "schema": GATE_SCHEMA,
            "verdict": self.verdict.value,
            "findings": [check.finding() for check in self.findings],
        }


def _worst_first(check: Check) -> tuple[int, int, float]:
    excess = 0.0
    if check.loss is not None and check.margin:
        excess = check.loss / check.margin if math.isfinite(check.margin) else check.loss
    return (check.level != "error", _ORDER.index(check.status), -excess)


def conclude(checks: Sequence[Check]) -> Verdict:
    """The verdict of a run: the worst of the checks that may decide. A run without a judgement is incomplete."""
    deciding = [c.status for c in checks if c.severity == "error"]
    for status in _ORDER[:4]:
        if status in deciding:
            return Verdict(status.value)
    return Verdict.PASS if Status.PASS in deciding else Verdict.INCOMPLETE


def waive(check: Check, reason: str) -> Check:
    """The same check, shown and not counted."""
    return replace(check, status=Status.WAIVED, message=f"{check.message} (was {check.status.value}; waived: {reason})")

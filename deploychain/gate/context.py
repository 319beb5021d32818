"""What every part of the gate looks at, and the questions that it turns into checks."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Literal

from deploychain.gate.baseline import Baseline
from deploychain.gate.decision import decide, more_samples
from deploychain.gate.limits import GateLimits
from deploychain.gate.noise import Loss
from deploychain.records import Comparison
from deploychain.verdicts import Check, Status


@dataclass(frozen=True, slots=True)
class Context:
    """One judgement: what was measured, what is allowed, what it is compared with."""

    comparison: Comparison
    limits: GateLimits
    baseline: Baseline | None  # only one that may be compared with
    run: str = "RUN"  # how the run is called in the commands that look deeper
    device_changed: bool = False
    pipeline: str = ""  # the pipeline file, for the same commands

    def seed(self, *names: str) -> int:
        """A seed of its own for each comparison, the same on every machine."""
        return self.limits.seed + zlib.crc32("\0".join(names).encode())


@dataclass(frozen=True, slots=True)
class Question:
    """A loss to hold against a limit.

    Attributes:
        check: everything but the answer; its message is the subject of the sentence.
        margin: see `decision.decide`.
        null: see `decision.decide`.
        unit: printed after a loss: " %" or "".
        group: questions of one group (the classes of a metric) share one chance of a false alarm and become one check.
        per: what more of would narrow the bounds.
    """

    check: Check
    loss: Loss
    limit: float
    margin: float
    null: float = 0.0
    unit: str = ""
    group: tuple[str, ...] = field(default=())
    per: Literal["samples", "repeats"] = "samples"


def matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def literal(patterns: Iterable[str]) -> list[str]:
    """The patterns that name one thing."""
    return [pattern for pattern in patterns if not any(c in pattern for c in "*?[")]


def number(value: float | None) -> str:
    """A number as the messages print it."""
    if value is None or not math.isfinite(value):
        return "unknown"
    return f"{value:.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.5g}"


def answer(questions: Sequence[Question], limits: GateLimits) -> list[Check]:
    """Decide every question; the chance of a false alarm is shared among the groups and within each of them."""
    groups: dict[tuple[str, ...], list[Question]] = {}
    for index, question in enumerate(questions):
        groups.setdefault(question.group or (str(index),), []).append(question)
    checks = []
    for members in groups.values():
        tail = min(0.5, limits.false_alarms / (len(groups) * len(members)))
        decided = [_answer(q, (tail, 1 - limits.confidence), limits.confidence) for q in members]
        checks.append(max(decided, key=_severity))
    return checks


def _severity(check: Check) -> tuple[int, float]:
    order = (Status.PASS, Status.INCONCLUSIVE, Status.FAIL)
    return order.index(check.status), check.loss if check.loss is not None else -math.inf


def _answer(question: Question, tails: tuple[float, float], confidence: float) -> Check:
    loss, limit, margin, unit = question.loss, question.limit, question.margin, question.unit
    status, low, high = decide(loss, limit, margin, tails, question.null)
    needed = None
    if status is Status.PASS and not math.isfinite(margin):
        tail = f" ({loss.how})"
    elif low is None or high is None:
        tail = f"; {loss.how}: the number alone was judged"
        if status is Status.INCONCLUSIVE and loss.resolution > margin:
            tail += f", and samples this few cannot exclude a loss of {loss.resolution:.3g}{unit} (the rule of three)"
    elif status is Status.FAIL:
        tail = f"; loss {loss.estimate:.3g}{unit}, at least {low:.3g}{unit} ({loss.how})"
    elif status is Status.PASS:
        tail = f"; a loss above {max(high, 0.0):.3g}{unit} is excluded at {confidence:.0%} ({loss.how})"
        if loss.estimate > limit:
            tail = f"; it cannot be told from no loss{tail}"
    else:
        needed = more_samples(loss, low, high, limit, margin, question.null)
        settle = (
            f"{needed} more {question.per} would settle it"
            if needed
            else f"the estimate is too near the limit for any number of {question.per}"
        )
        tail = (
            f"; loss {loss.estimate:.3g}{unit}, anything from {low:.3g}{unit} to {high:.3g}{unit} "
            f"is possible ({loss.how}): {settle}"
        )
    return replace(
        question.check,
        status=status,
        message=question.check.message + tail,
        loss=loss.estimate,
        low=low,
        high=high,
        margin=margin if math.isfinite(margin) else None,
        needed=needed,
        how=loss.how,
    )

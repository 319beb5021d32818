"""`judge`: measured against limits and baseline. Pure: no file, no clock, no framework."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator

from deploychain.gate.accuracy import judge_accuracy
from deploychain.gate.baseline import Baseline
from deploychain.gate.context import Context, Question, answer, matches
from deploychain.gate.device import judge_latency, judge_size
from deploychain.gate.engines import judge_layers
from deploychain.gate.evidence import judge_evidence
from deploychain.gate.facts import differences, version_changes
from deploychain.gate.limits import GateLimits, Waiver
from deploychain.records import Comparison
from deploychain.verdicts import Check, GateResult, Status, Verdict, conclude, waive


def judge(
    comparison: Comparison,
    limits: GateLimits,
    baseline: Baseline | None = None,
    *,
    baseline_problem: str = "",
    baseline_path: str = "",
    run: str = "RUN",
    pipeline: str = "",
    today: datetime.date | None = None,
) -> GateResult:
    """Decide whether what was measured may go in.

    Args:
        comparison: everything measured in one run.
        limits: what is allowed.
        baseline: the accepted baseline, verified; None judges without one.
        baseline_problem: why there is none although one is wanted (missing, damaged, hand-edited): not comparable.
        baseline_path: shown in the result.
        run, pipeline: how they are called in the commands that look deeper.
        today: for waivers that end; None: they are taken as holding.

    Missing evidence, numbers that are not finite and an empty comparison are never a pass.
    """
    checks: list[Check] = []
    changes: list[str] = []
    usable = baseline
    changed: dict[str, str] = {}
    if baseline is not None:
        changed = differences(comparison, baseline)
        refused = {fact: why for fact, why in changed.items() if fact not in limits.expect_change}
        changes += [f"{why} (expected)" for fact, why in changed.items() if fact not in refused]
        changes += version_changes(comparison, baseline)
        for fact, why in refused.items():
            expect = fact in ("tensorrt", "device", "flags", "pipeline")
            remedy = f"; if that is the change under test: --expect-change {fact}" if expect else ""
            checks.append(Check("", "baseline", Status.NOT_COMPARABLE, f"{why}{remedy}", metric=fact))
        if refused:
            usable = None
    elif baseline_problem:
        checks.append(Check("", "baseline", Status.NOT_COMPARABLE, baseline_problem))
    else:
        checks.append(Check("", "baseline", Status.NOTE, "judged without a baseline: a slow decline stays unseen"))
    context = Context(comparison, limits, usable, run, "device" in changed, pipeline)
    questions: list[Question] = []
    for found in _all(context):
        if isinstance(found, Question):
            questions.append(found)
        else:
            checks.append(found)
    checks += answer(questions, limits)
    # Several rules may miss the same evidence; it is said once.
    checks = list({(c.stage, c.metric, c.kind, c.node, c.severity, c.message): c for c in reversed(checks)}.values())
    checks = list(_waived(reversed(checks), limits.waivers, today))
    if conclude(checks) is Verdict.INCOMPLETE and not any(c.status is Status.INCOMPLETE for c in checks):
        checks.append(Check("", "missing", Status.INCOMPLETE, "nothing was judged: no limit met a measurement"))
    return GateResult(
        verdict=conclude(checks),
        checks=tuple(checks),
        on_inconclusive=limits.on_inconclusive,
        changes=tuple(changes),
        baseline_path=baseline_path,
        baseline_created=baseline.history[-1].date if baseline is not None and baseline.history else "",
        history=baseline.history if baseline is not None else (),
    )


def _all(context: Context) -> Iterator[Check | Question]:
    yield from judge_evidence(context)
    yield from judge_accuracy(context)
    yield from judge_layers(context)
    yield from judge_latency(context)
    yield from judge_size(context)


def _waived(checks: Iterable[Check], waivers: tuple[Waiver, ...], today: datetime.date | None) -> Iterator[Check]:
    for check in checks:
        # A baseline that cannot be compared is no finding to live with: accept another one, or judge without.
        unwaivable = check.status is Status.NOT_COMPARABLE and check.kind == "baseline"
        if check.status in (Status.PASS, Status.NOTE) or unwaivable:
            yield check
            continue
        waiver = next((w for w in waivers if _aims(w, check)), None)
        if waiver is None:
            yield check
        elif waiver.until is not None and today is not None and today > waiver.until:
            yield check
            message = f"the waiver of {check.stage or 'the run'} ({waiver.reason}) ended on {waiver.until.isoformat()}"
            yield Check(check.stage, "waiver", Status.NOTE, message, check.metric, check.node)
        else:
            yield waive(check, waiver.reason)


def _aims(waiver: Waiver, check: Check) -> bool:
    return (
        matches(check.stage, waiver.stage)
        and matches(check.kind, waiver.kind)
        and matches(check.metric, waiver.metric)
        and any(matches(node, waiver.node) for node in check.node.split(" + "))
    )

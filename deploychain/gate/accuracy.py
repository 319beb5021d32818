"""Which accuracy rule judges what, and what the rules name and the run lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from deploychain.gate.context import Context, Question, literal, matches
from deploychain.gate.limits import AccuracyRule
from deploychain.gate.subject import Found, Subject
from deploychain.records import EvalReport
from deploychain.verdicts import Check, Status


def judge_accuracy(context: Context) -> Iterator[Found]:
    """All checks and questions of the accuracy rules."""
    evals = [report for report in context.comparison.evals if report.ran]
    judged: dict[tuple[str, str], bool] = {}  # whether a limit could be held against anything
    for index, rule in enumerate(context.limits.accuracy):
        hit = False
        for subject in _subjects(context, rule, index, evals):
            hit = True
            found = list(subject.judge())
            told = any(isinstance(f, Question) or f.status is not Status.NOTE for f in found)
            key = subject.report.stage, subject.metric
            judged[key] = judged.get(key, False) or told
            yield from found
        if rule.required:
            yield from _not_met(context, rule, index, evals, hit)
    if evals and not context.limits.accuracy:
        yield _missing("", "", "accuracy is an empty list: stages were measured, and nothing limits them")
    yield from _not_judged(evals, judged)


def _subjects(context: Context, rule: AccuracyRule, index: int, evals: Sequence[EvalReport]) -> Iterator[Subject]:
    # A pattern of every metric says nothing of a metric that nobody described.
    named = rule.better if rule.metric != ("*",) else None
    for report in evals:
        for metric in sorted(report.metrics) if matches(report.stage, rule.stage) else ():
            direction = context.comparison.directions.get(metric)
            if matches(metric, rule.metric) and (not direction or rule.better in (None, direction)):
                yield Subject(context, rule, index, report, metric, direction or named)


def _not_met(
    context: Context, rule: AccuracyRule, index: int, evals: Sequence[EvalReport], hit: bool
) -> Iterator[Check]:
    """What a required rule names and the run lacks."""
    names = {report.stage for report in context.comparison.evals}
    for name in literal(rule.stage):
        if name not in names:
            hit = True
            yield _missing(name, "", f"{name} is limited by accuracy[{index}] and was not measured", index)
    for name in literal(rule.metric):
        for report in evals:
            if matches(report.stage, rule.stage) and name not in report.metrics:
                hit = True
                yield _missing(report.stage, name, f"{name} of {report.stage} was not measured", index)
    if hit:
        return
    if not any(matches(name, rule.stage) for name in names):
        yield _missing(", ".join(rule.stage), "", f"accuracy[{index}] matches nothing that was measured", index)
    elif any(matches(report.stage, rule.stage) for report in evals):
        yield _missing(", ".join(rule.stage), "", f"accuracy[{index}] matches no metric that was measured", index)


def _not_judged(evals: Sequence[EvalReport], judged: Mapping[tuple[str, str], bool]) -> Iterator[Check]:
    """Metrics that no rule names, and those of which no rule that names them had anything to judge."""
    references = {report.reference for report in evals}
    for report in evals:
        for metric in sorted(report.metrics):
            if (report.stage, metric) not in judged:
                yield Check(report.stage, "unjudged", Status.NOTE, f"no rule limits {metric} of {report.stage}", metric)
            elif not judged[report.stage, metric] and report.stage not in references:
                yield _missing(report.stage, metric, f"no limit of {metric} of {report.stage} had anything to judge")


def _missing(stage: str, metric: str, message: str, *index: int) -> Check:
    return Check(stage, "missing", Status.INCOMPLETE, message, metric, rule=("accuracy", *index))

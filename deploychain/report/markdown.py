"""Markdown of a gate, for a job summary or a pull-request comment: the worst findings first, under a size limit."""

from __future__ import annotations

from deploychain.report.text import markdown as literal
from deploychain.report.text import number
from deploychain.verdicts import Check, GateResult, Status, Verdict

COMMENT_BYTES = 60_000  # a GitHub comment holds 65 536 characters, a job summary 1 MiB

_SENTENCES = {
    Verdict.PASS: "Nothing is worse than allowed.",
    Verdict.FAIL: "At least one limit is broken.",
    Verdict.INCONCLUSIVE: "The measurements do not settle it.",
    Verdict.INCOMPLETE: "Something that must be known was not measured.",
    Verdict.NOT_COMPARABLE: "The baseline is missing or was measured with something else.",
}
_MARKS = {"error": "❌", "warning": "⚠️", "note": "·"}


def sentence(verdict: Verdict) -> str:
    """What a verdict means, for people."""
    return _SENTENCES[verdict]


def _mark(check: Check) -> str:
    if check.level == "error" and check.status in (Status.INCONCLUSIVE, Status.INCOMPLETE, Status.NOT_COMPARABLE):
        return "❓"
    return _MARKS[check.level]


def render(result: GateResult, *, title: str = "Precision gate", limit: int = COMMENT_BYTES) -> str:
    """The Markdown text, never longer than `limit` bytes; what was cut is counted."""
    passed = sum(check.status is Status.PASS for check in result.checks)
    found = result.findings
    head = [f"## {literal(title)}: {result.verdict.value}", "", f"{_SENTENCES[result.verdict]} {passed} checks passed."]
    if result.baseline_created:
        head[-1] += f" Baseline of {literal(result.baseline_created[:10])}."
    if result.changes:
        head += ["", "Changed since the baseline: " + "; ".join(literal(c) for c in result.changes[:20]) + "."]
    if found:
        head += ["", "| | stage | check | value | baseline | limit | finding |", "| - | - | - | -: | -: | -: | - |"]
    text = "\n".join(head) + "\n"
    reserve = 200
    size = len(text.encode())
    shown = 0
    for check in found:
        row = _row(check)
        size += len(row.encode())
        if size > limit - reserve:
            break
        text += row
        shown += 1
    if shown < len(found):
        text += f"\n{len(found) - shown} more findings are in gate.json and report.html.\n"
    return text


def _row(check: Check) -> str:
    look = f" Look: {literal(check.look, 120)}" if check.look else ""
    what = " ".join(filter(None, (check.kind, check.metric)))
    cells = (
        _mark(check),
        literal(check.stage, 60) or "–",
        literal(what, 60),
        number(check.value),
        number(check.baseline),
        number(check.limit),
        f"{literal(check.status.value)}: {literal(check.message, 700)}{look}",
    )
    return "| " + " | ".join(cells) + " |\n"

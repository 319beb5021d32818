"""The gate on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from deploychain import console
from deploychain.report.markdown import sentence
from deploychain.report.plots import sparkline
from deploychain.report.text import number, shorten, visible
from deploychain.verdicts import Entry, GateResult, Status, Verdict

MAX_ROWS = 30

_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}
_VERDICT_STYLES = {Verdict.PASS: "bold green", Verdict.FAIL: "bold red"}


def print_gate(result: GateResult) -> None:
    """Findings as a table, the worst first, then each in a sentence, then the verdict."""
    found = result.findings[:MAX_ROWS]
    rows = [
        (
            "warning" if c.level == "warning" else c.status.value,
            shorten(visible(c.stage), 24),
            shorten(visible(" ".join(filter(None, (c.kind, c.metric, c.node)))), 36),
            number(c.value),
            number(c.baseline),
            number(c.limit),
        )
        for c in found
    ]
    if rows:
        columns = ("verdict", "stage", "check", "value", "baseline", "limit")
        styles = {i: _STYLES[c.level] for i, c in enumerate(found)}
        console.table(columns, rows, right=("value", "baseline", "limit"), styles=styles)
    for check in found:
        if check.status is Status.NOTE and check.kind == "unjudged":
            continue
        look = f" Look: {check.look}" if check.look and check.level == "error" else ""
        console.out(f"- {visible(check.message)}.{look}", style=_STYLES[check.level] if check.level == "note" else "")
    if len(result.findings) > len(found):
        console.out(f"- and {len(result.findings) - len(found)} more findings (--json, or --out DIR)")
    for change in result.changes:
        console.out(f"- changed since the baseline: {change}", style="dim")
    passed = sum(c.status is Status.PASS for c in result.checks)
    since = f", baseline of {result.baseline_created[:10]}" if result.baseline_created else ""
    console.out()
    text = f"{result.verdict.value}: {sentence(result.verdict)} {passed} checks passed{since}."
    console.out(f"{text} Exit code {result.exit_code}.", style=_VERDICT_STYLES.get(result.verdict, "bold yellow"))


def print_accepted(entry: Entry, path: str) -> None:
    """What an acceptance changed."""
    rows = [(c.name, number(c.old), number(c.new)) for c in entry.changes]
    if rows:
        console.table(("value", "old", "new"), rows, right=("old", "new"))
    console.out(f"accepted by {entry.author}: {entry.reason}")
    console.out(f"commit {path}")


def print_history(history: Sequence[Entry], patterns: Sequence[str] = ()) -> None:
    """Each value over the accepted baselines, oldest first, and the acceptances.

    Values that never changed are counted, not shown, unless a pattern asks for them.
    """
    names = sorted({name for entry in history for name in entry.values})
    if patterns:
        names = [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]
    rows, still = [], 0
    for name in names:
        values = [entry.values.get(name) for entry in history]
        known = [v for v in values if v is not None]
        if len(history) > 1 and len(set(values)) == 1 and not patterns:
            still += 1
        elif known:
            rows.append(
                (name, number(known[0]), number(known[-1]), number(min(known)), number(max(known)), sparkline(values))
            )
    columns = ("value", "first", "last", "lowest", "highest", "over time")
    if rows:
        console.table(columns, rows, right=columns[1:5])
    if still:
        console.out(f"{still} values never changed (--value '*' shows them)")
    for entry in history:
        console.out(
            f"{entry.date[:10]}  {visible(entry.author)}: {visible(entry.reason)} ({len(entry.changes)} changes)"
        )

"""One line a finding for CI systems: GitHub workflow commands, and OpenMetrics text for GitLab."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from deploychain.report.sarif import Key, place
from deploychain.report.text import shorten, visible
from deploychain.verdicts import Check, GateResult, Status, Verdict

MAX_ANNOTATIONS = 10  # GitHub shows ten errors and ten warnings of a step


def workflow_commands(
    result: GateResult, *, limits_file: str = "", lines: Mapping[Key, int] | None = None
) -> list[str]:
    """GitHub workflow commands, the worst findings first. Percent-encoded, so that a name cannot start a command."""
    count = {"error": 0, "warning": 0}
    made = []
    for check in result.findings:
        if check.level not in count or count[check.level] >= MAX_ANNOTATIONS:
            continue
        count[check.level] += 1
        file, line = place(check, limits_file, lines or {})
        title = " ".join(filter(None, ("gate:", check.stage, check.kind, check.metric)))
        message = shorten(visible(f"{check.status.value}: {check.message}"), 1000)
        made.append(
            f"::{check.level} file={_property(file)},line={line},title={_property(shorten(title))}::{_data(message)}"
        )
    return made


def _data(text: str) -> str:
    return visible(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def openmetrics(result: GateResult) -> str:
    """OpenMetrics text: the verdict, and the value, baseline and limit of each check."""
    lines = ["# TYPE deploychain_gate_verdict gauge"]
    lines += [f'deploychain_gate_verdict{{verdict="{v.value}"}} {int(v is result.verdict)}' for v in Verdict]
    lines.append("# TYPE deploychain_gate_checks gauge")
    for status in Status:
        lines.append(
            f'deploychain_gate_checks{{status="{status.value}"}} {sum(c.status is status for c in result.checks)}'
        )
    for field in ("value", "baseline", "limit"):
        lines.append(f"# TYPE deploychain_gate_{field} gauge")
        seen: set[str] = set()
        for labels, value in _values(result.checks, field):
            if labels not in seen:
                seen.add(labels)
                lines.append(f"deploychain_gate_{field}{{{labels}}} {value!r}")
    return "\n".join([*lines, "# EOF"]) + "\n"


def _values(checks: tuple[Check, ...], field: str) -> Iterator[tuple[str, float]]:
    for check in checks:
        value = getattr(check, field)
        if value is None or not math.isfinite(value):
            continue
        names = {"stage": check.stage, "kind": check.kind, "metric": check.metric, "node": check.node}
        yield ",".join(f'{key}="{_label(name)}"' for key, name in names.items() if name), float(value)


def _label(text: str) -> str:
    return shorten(visible(text), 200).replace("\\", "\\\\").replace('"', '\\"')

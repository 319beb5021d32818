"""The forms of an audit report: text, SARIF for code scanning, GitHub commands (JSON: `AuditReport.to_json`)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from deploychain.audit.finding import AuditReport, Finding, Severity
from deploychain.audit.rules import load_rules

_SARIF_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
_GITHUB_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def as_text(report: AuditReport) -> list[str]:
    """Lines for people: place, rule, what will happen, the corrected code."""
    lines: list[str] = []
    rules = load_rules()
    for f in report.findings:
        lines.append(f"{f.path}:{f.line}:{f.column}: {f.severity.value} {f.rule} {rules[f.rule].name}")
        lines.append(f"    {f.message}")
        lines += [f"  + {line}" for line in f.fix.splitlines()]
    lines += [f"{p.path}: not audited: {p.text}" for p in report.problems]
    lines += [f"note: {n}" for n in report.notes]
    lines.append(summary(report))
    return lines


def summary(report: AuditReport) -> str:
    counts = {s: sum(f.severity is s for f in report.findings) for s in Severity}
    text = ", ".join(f"{n} {s.value}{'' if n == 1 else 's'}" for s, n in counts.items())
    tail = f", {report.suppressed} ignored by comments" if report.suppressed else ""
    files = f"{report.files} file{'' if report.files == 1 else 's'}"
    incomplete = len({p.path for p in report.problems})
    unread = f", {incomplete} of them not or not fully audited" if incomplete else ""
    return f"{text}{tail} in {files}{unread}"


def as_github(report: AuditReport) -> list[str]:
    """Workflow commands that GitHub shows at the lines of a pull request."""
    lines = []
    for f in report.findings:
        place = f"file={_property(f.path)},line={f.line},col={f.column},title={_property(f.rule)}"
        lines.append(f"::{_GITHUB_LEVEL[f.severity]} {place}::{_data(f.message + chr(10) + f.fix)}")
    for p in report.problems:
        lines.append(f"::warning file={_property(p.path)}::{_data('not audited: ' + p.text)}")
    return lines


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def as_sarif(report: AuditReport, version: str) -> dict[str, Any]:
    """A SARIF 2.1.0 log with one run."""
    rules = load_rules()
    used = sorted({f.rule for f in report.findings})
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "deploychain audit",
                        "semanticVersion": version,
                        "rules": [
                            {
                                "id": name,
                                "name": "".join(part.capitalize() for part in rules[name].name.split("-")),
                                "shortDescription": {"text": rules[name].title},
                                "fullDescription": {"text": rules[name].truth},
                                "help": {"text": f"deploychain audit --explain {name}"},
                            }
                            for name in used
                        ],
                    }
                },
                "results": [_result(f, used) for f in report.findings],
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "toolExecutionNotifications": [
                            {
                                "level": "warning",
                                "message": {"text": f"not audited: {p.text}"},
                                "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(p.path)}}}],
                            }
                            for p in report.problems
                        ],
                    }
                ],
            }
        ],
    }


def _result(f: Finding, used: list[str]) -> dict[str, Any]:
    return {
        "ruleId": f.rule,
        "ruleIndex": used.index(f.rule),
        "level": _SARIF_LEVEL[f.severity],
        "message": {"text": f"{f.message}\nInstead: {f.fix}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(f.path)},
                    "region": {"startLine": f.line, "startColumn": f.column},
                }
            }
        ],
    }


def _uri(path: str) -> str:
    return quote(path.replace("\\", "/"))

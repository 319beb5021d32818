"""What an audit finds, and the document that scripts read."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

AUDIT_SCHEMA = "deploychain.audit/1"


class Severity(str, Enum):
    """How bad: an error breaks or silently spoils training, a warning may, a note is worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        return {"error": 2, "warning": 1, "note": 0}[self.value]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `line` and `column` count from 1; both are 1 where the place is a module or a graph node."""

    path: str
    line: int
    column: int
    rule: str
    severity: Severity
    message: str
    fix: str  # the corrected code, or what to do

    @property
    def order(self) -> tuple[str, int, int, str]:
        return (self.path, self.line, self.column, self.rule)


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that could not be audited, and why."""

    path: str
    text: str
    partial: bool = False  # only one view of it is missing; the rest was audited


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of one audit."""

    findings: tuple[Finding, ...] = ()
    files: int = 0
    problems: tuple[Problem, ...] = ()
    suppressed: int = 0  # findings switched off by a comment in the code
    notes: tuple[str, ...] = field(default=())  # what could not be examined, for people

    def failing(self, fail_on: Severity) -> tuple[Finding, ...]:
        """The findings at or above a severity."""
        return tuple(f for f in self.findings if f.severity.rank >= fail_on.rank)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": AUDIT_SCHEMA,
            "findings": [
                {
                    "path": f.path,
                    "line": f.line,
                    "column": f.column,
                    "rule": f.rule,
                    "severity": f.severity.value,
                    "message": f.message,
                    "fix": f.fix,
                }
                for f in self.findings
            ],
            "files": self.files,
            "problems": [{"path": p.path, "text": p.text} for p in self.problems],
        }

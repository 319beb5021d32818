"""Reading the monitor's JSON lines: findings, the rank that a non-finite value came from, the plot for the report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from deploychain.audit.explain import find_rule
from deploychain.audit.finding import AuditReport, Finding, Problem, Severity
from deploychain.audit.scale_health import judge_scale
from deploychain.errors import ArtifactError, ConfigError

_FIX = {
    "R01": "compute the loss from `logits.float()`, or inside the autocast block",
    "R19": "dynamo=False for opset 17, or ask for 18; then check the file (audit --onnx)",
    "R28": "step the scheduler only where the scale did not fall",
    "R03": "optimizer.zero_grad() after every scaler.step()",
    "R05": "find the first non-finite gradient: see `first_non_finite` in the log",
    "R08": "keep FP32 parameters and use autocast",
    "R22": "run this module in float32, or normalise its input",
    "R27": "enter autocast for this device type, in this thread",
}


def read_log(path: Path) -> list[dict[str, Any]]:
    """The records of one log. A last line that was cut off by a kill is dropped.

    Raises:
        ArtifactError: the file cannot be read, or holds no record of the monitor.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(
            f"cannot read the monitor's log: {error}", where=str(path), remedy="give a .jsonl file"
        ) from None
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except ValueError:
            if number == len(lines):
                break
            raise ArtifactError(
                "not JSON", where=f"{path}:{number}", remedy="give a log of deploychain.monitor"
            ) from None
        if isinstance(record, dict):
            records.append(record)
    if not records or records[0].get("type") != "start":
        raise ArtifactError(
            "holds no record of the monitor", where=str(path), remedy="give a log of deploychain.monitor"
        )
    return records


def scale_history(records: Iterable[dict[str, Any]]) -> tuple[list[tuple[int, float]], list[int], int]:
    """(scale changes, skipped steps, number of steps) of a log."""
    changes: list[tuple[int, float]] = []
    skipped: list[int] = []
    steps = 0
    for record in records:
        if record.get("type") == "history":
            changes += [(int(step), float(scale)) for step, scale in record.get("scale", [])]
            steps = max(steps, int(record.get("last_step", 0)))
        elif record.get("type") == "skip":
            skipped.append(int(record["step"]))
    return changes, skipped, steps


# What torch and its exporters print when something was silently given up.
_LOG_LINES = (
    (
        re.compile(
            r"Disabling autocast|User provided device_type of .* not available\. Disabling"
        ),  # newer, older torch
        "R27",
        Severity.ERROR,
        "autocast was asked for and is off: everything runs in float32",
    ),
    (
        re.compile(r"[Ff]ailed to convert the model to the target version"),
        "R19",
        Severity.ERROR,
        "the exporter could not convert the file to the opset that was asked for and left it as it was",
    ),
    (
        re.compile(r"Detected call of `lr_scheduler\.step\(\)` before `optimizer\.step\(\)`"),
        "R28",
        Severity.NOTE,
        "the scheduler stepped after a skipped step (or before the optimiser)",
    ),
    (
        re.compile(r"GradScaler is enabled, but CUDA is not available"),
        "R27",
        Severity.WARNING,
        "the GradScaler switched itself off: there is no CUDA",
    ),
)


def audit_text_log(path: Path) -> AuditReport:
    """Findings in the printed output of a training or an export."""
    findings = []
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            for pattern, rule, severity, message in _LOG_LINES:
                if pattern.search(line):
                    findings.append(_finding(path, number, rule, severity.value, message))
    return AuditReport(tuple(findings), 1)


def audit_log(path: Path) -> AuditReport:
    """The findings of one run: those that the monitor made, and R05 from the whole series.

    A file that is not of the monitor is searched for what torch prints (see `audit_text_log`).
    """
    try:
        with path.open("rb") as file:
            if not file.read(64).lstrip().startswith(b"{"):
                return audit_text_log(path)
    except OSError as error:
        return AuditReport(files=1, problems=(Problem(str(path), f"cannot be read: {error.strerror}"),))
    try:
        records = read_log(path)
    except ArtifactError as error:
        return AuditReport(files=1, problems=(Problem(str(path), error.message),))
    findings = []
    try:
        for number, record in enumerate(records, start=1):
            if record.get("type") == "finding":
                said = f"{record['where']}: {record['message']}"
                findings.append(_finding(path, number, find_rule(record["rule"]).id, record["severity"], said))
        changes, skipped, steps = scale_history(records)
    except (ConfigError, KeyError, TypeError, ValueError) as error:
        text = f"not a record that the monitor writes ({type(error).__name__}: {error})"
        return AuditReport(files=1, problems=(Problem(str(path), text),))
    last = len(records)
    for symptom in judge_scale(changes, skipped, steps):
        findings.append(_finding(path, last, symptom.rule, symptom.severity, symptom.message))
    return AuditReport(tuple(findings), 1)


def _finding(path: Path, line: int, rule: str, severity: str, message: str) -> Finding:
    return Finding(
        str(path), line, 1, rule, Severity(severity), message, _FIX.get(rule, "see deploychain audit --explain " + rule)
    )


def guilty_rank(logs: Sequence[Path]) -> dict[str, Any] | None:
    """Which rank a non-finite value came from, out of the logs of all ranks; None where no rank saw one of its own.

    A rank is guilty of what it saw *before* gradients were averaged: its loss, its activations, or its own gradient on
    a sampled step. After the average every rank has the same inf, which proves nothing.
    """
    first: dict[str, Any] | None = None
    for path in logs:
        records = read_log(path)
        rank = records[0].get("rank")
        for record in records:
            own = _own_fault(record)
            if own is not None and (first is None or own["step"] < first["step"]):
                first = {"rank": rank, **own}
    return first


def _own_fault(record: dict[str, Any]) -> dict[str, Any] | None:
    if record.get("type") == "sample":
        for tensor in record.get("tensors", []):
            if tensor.get("finite") is False:
                return {"step": record["step"], "kind": tensor["kind"], "where": tensor["name"]}
    if record.get("type") == "history" and record.get("non_finite_losses"):
        return {"step": record["non_finite_losses"][0], "kind": "loss", "where": "loss"}
    return None


def plot_svg(records: Sequence[dict[str, Any]], width: int = 720, height: int = 220) -> str:
    """The scale (powers of two) over the steps with the skipped ones marked, as an inline SVG without scripts."""
    import math

    changes, skipped, steps = scale_history(records)
    if not changes or steps < 1:
        return ""
    left, bottom, top = 48, 28, 14
    logs = [math.log2(scale) if scale > 0 else 0.0 for _, scale in changes]
    low, high = math.floor(min(logs)) - 1, math.ceil(max(logs)) + 1

    def x(step: float) -> float:
        return left + (width - left - 10) * (step - 1) / max(steps - 1, 1)

    def y(value: float) -> float:
        return top + (height - top - bottom) * (high - value) / (high - low)

    points = [f"{x(changes[0][0]):.1f},{y(logs[0]):.1f}"]
    for (step, _), before, value in zip(changes[1:], logs, logs[1:], strict=False):
        points += [f"{x(step):.1f},{y(before):.1f}", f"{x(step):.1f},{y(value):.1f}"]
    points.append(f"{x(steps):.1f},{y(logs[-1]):.1f}")
    marks = "".join(
        f'<line x1="{x(s):.1f}" x2="{x(s):.1f}" y1="{height - bottom}" y2="{height - bottom - 8}" stroke="#b3261e"/>'
        for s in skipped
    )
    ticks = "".join(
        f'<text x="{left - 6}" y="{y(v) + 4:.1f}" text-anchor="end">2^{v}</text>'
        f'<line x1="{left}" x2="{width - 10}" y1="{y(v):.1f}" y2="{y(v):.1f}" stroke="#ddd"/>'
        for v in range(low, high + 1, max(1, (high - low) // 6))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-size="11" '
        f'font-family="sans-serif"><title>Loss scale over {steps} steps, {len(skipped)} skipped</title>{ticks}'
        f'<polyline fill="none" stroke="#1a5fb4" stroke-width="1.5" points="{" ".join(points)}"/>{marks}'
        f'<text x="{left}" y="{height - 8}">step 1</text>'
        f'<text x="{width - 10}" y="{height - 8}" text-anchor="end">step {steps}; skipped steps in red</text></svg>'
    )

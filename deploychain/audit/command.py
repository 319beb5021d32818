"""One call for `deploychain audit`: which checks run, and the document that comes out.

Model, graph and demo checks need torch or onnx; their modules are imported here when they are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deploychain.audit.explain import explain, find_rule
from deploychain.audit.finding import AuditReport
from deploychain.audit.formats import as_github, as_sarif, as_text
from deploychain.audit.rules import load_rules
from deploychain.audit.runner import audit_paths
from deploychain.audit.settings import AuditSettings, load_settings
from deploychain.errors import ConfigError
from deploychain.records import to_json

FORMATS = ("text", "json", "sarif", "github")


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asked for."""

    paths: tuple[Path, ...] = ()
    format: str = "text"
    select: str | None = None
    ignore: str | None = None
    fail_on: str | None = None
    model: str | None = None
    onnx: tuple[Path, ...] = ()
    opset: int | None = None
    logs: tuple[Path, ...] = ()
    dtype_map: bool = False  # with `model`: every op and its dtype under CUDA autocast


@dataclass(frozen=True, slots=True)
class Result:
    """Lines of text or one JSON document, and whether there are findings at or above the limit."""

    output: list[str] | dict[str, Any]
    failed: bool
    report: AuditReport
    unexamined: tuple[str, ...] = ()  # why the model that was asked for could not be examined: never a pass


def run(request: Request) -> Result:
    """Run the audit.

    Raises:
        ConfigError: nothing to audit, an unknown format, rule, severity or path, or a task that cannot be loaded.
        CapabilityError: --model or --onnx without torch or onnx.
    """
    if request.format not in FORMATS:
        raise ConfigError(f"unknown format {request.format!r}", where="--format", remedy=f"one of {', '.join(FORMATS)}")
    if not (request.paths or request.model or request.onnx or request.logs):
        raise ConfigError(
            "nothing to audit", where="deploychain audit", remedy="give files or folders, --model, --onnx or --log"
        )
    start = request.paths[0] if request.paths else Path.cwd()
    settings = load_settings(start, select=request.select, ignore=request.ignore, fail_on=request.fail_on)
    if request.dtype_map and not request.model:
        raise ConfigError("there is no model to map", where="--dtype-map", remedy="give --model task.py:Task as well")
    if request.opset is not None and not request.onnx:
        raise ConfigError("there is no ONNX file to compare", where="--opset", remedy="give --onnx FILE as well")
    report = audit_paths(request.paths, settings) if request.paths else AuditReport()
    unexamined: tuple[str, ...] = ()
    if request.model:
        from deploychain.backends.amp_model_rules import audit_task

        of_model = audit_task(request.model)
        unexamined = tuple(problem.text for problem in of_model.problems if not problem.partial)
        report = merge(report, of_model, settings)
    for file in request.onnx:
        from deploychain.backends.amp_onnx_rules import audit_onnx

        report = merge(report, audit_onnx(file, requested_opset=request.opset), settings)
    for file in request.logs:
        from deploychain.audit.monitor_log import audit_log

        report = merge(report, audit_log(file), settings)
    output = _output(report, request.format)
    if request.dtype_map and request.model and not unexamined:
        output = _with_dtype_map(output, request.model)
    return Result(output, bool(report.failing(settings.fail_on)), report, unexamined)


def _with_dtype_map(output: list[str] | dict[str, Any], model: str) -> list[str] | dict[str, Any]:
    """The dtype map in front of the text, or under "dtype_map" in a document."""
    from deploychain.backends.amp_model_rules import task_dtype_map

    table = task_dtype_map(model)
    if isinstance(output, dict):
        return {**output, "dtype_map": to_json(table)}
    head = f"dtype map under CUDA autocast, float16, by the {table.policies} policies of torch {table.torch}:"
    lines = [f"  {op.dtype:<9} {op.policy:<13} {op.op:<36} {op.module}" for op in table.ops if op.dtype]
    return [head, *lines, "", *output]


def merge(first: AuditReport, second: AuditReport, settings: AuditSettings | None = None) -> AuditReport:
    """Two reports in one; of the second only the rules that the settings select."""
    findings = second.findings
    if settings is not None:
        active = set(settings.active(load_rules()))
        findings = tuple(f for f in findings if f.rule in active)
    return replace(
        first,
        findings=tuple(sorted(first.findings + findings, key=lambda f: f.order)),
        files=first.files + second.files,
        problems=first.problems + second.problems,
        suppressed=first.suppressed + second.suppressed,
        notes=first.notes + second.notes,
    )


def _output(report: AuditReport, format: str) -> list[str] | dict[str, Any]:
    if format == "json":
        return report.to_json()
    if format == "sarif":
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("deploychain")
        except PackageNotFoundError:
            found = "0"
        return as_sarif(report, found)
    return as_github(report) if format == "github" else as_text(report)


def explained(name: str, demo: bool) -> list[str]:
    """The lines of --explain, with those of its experiment for --demo."""
    rule = find_rule(name)
    lines = explain(rule)
    if demo:
        from deploychain.backends.amp_demos import run_demo

        result = run_demo(rule.id)
        lines += ["", f"Experiment of {rule.id}, run now ({result.seconds:.1f} s, {result.how}):"]
        width = max((len(label) for label, _ in result.rows), default=0)
        lines += [f"    {label.ljust(width)}  {value}" for label, value in result.rows]
        lines += [f"    -> {result.conclusion}"]
    return lines


def rule_list() -> list[str]:
    """One line per rule."""
    return [f"{r.id}  {r.name:<24} {r.title} ({r.how})" for r in load_rules().values()]

"""The static audit: paths in, report out."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from deploychain.audit.context import Context, Rule, mentioned
from deploychain.audit.finding import AuditReport, Finding, Problem
from deploychain.audit.rules import load_rules
from deploychain.audit.settings import AuditSettings
from deploychain.audit.sources import Source, UnreadableSource, discover, load, parse
from deploychain.errors import ConfigError

_MANY_FILES = 150
# Files that mention none of these hold nothing that a rule looks for; "nnx" stands for onnx, Onnx, OnnxConversion.
_RELEVANT = (
    *("torch", "lightning", "accelerat", "transformers", "scaler", "trtexec", "tensorrt", "nnx", "ONNX", "autocast"),
    "deepspeed",
)
_COMMANDS = ("trtexec", "tensorrt", "nnx", "ONNX", "deepspeed", "accelerat", "polygraphy", "lightning")


def audit_paths(paths: Sequence[Path], settings: AuditSettings | None = None) -> AuditReport:
    """Audit files and folders. Files that cannot be read or parsed are reported in `problems`; nothing is executed.

    Raises:
        ConfigError: a path does not exist.
    """
    settings = settings or AuditSettings()
    for path in paths:
        if not path.exists():
            raise ConfigError(
                "no such file or folder", where=str(path), remedy="give Python files, notebooks or folders"
            )
    rules = load_rules()
    active = [rules[name] for name in settings.active(rules)]
    findings: list[Finding] = []
    problems: list[Problem] = []
    suppressed = 0
    found = list(discover(paths, settings.exclude))
    files = len(found)
    for kept, dropped, failed in _audit_files(found, tuple(rule.id for rule in active)):
        findings += kept
        suppressed += dropped
        problems += failed
    findings.sort(key=lambda f: f.order)
    notes = () if found else ("no Python file or notebook was found",)
    return AuditReport(tuple(findings), files, tuple(problems), suppressed, notes)


FileResult = tuple[list[Finding], int, list[Problem]]


def _audit_files(paths: Sequence[Path], rules: tuple[str, ...]) -> Iterator[FileResult]:
    """The results of many files, in order; on several processes where that pays and forking is safe."""
    audit = partial(_audit_file, rules=rules)
    workers = min(os.cpu_count() or 1, 8)
    if len(paths) < _MANY_FILES or workers < 2 or threading.active_count() > 1 or sys.platform != "linux":
        yield from map(audit, paths)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        yield from pool.map(audit, paths, chunksize=16)


def _audit_file(path: Path, rules: tuple[str, ...]) -> FileResult:
    try:
        source = load(path)
    except UnreadableSource as error:
        return [], 0, [Problem(str(path), str(error))]
    known = load_rules()
    kept, dropped, failed = audit_source(source, [known[name] for name in rules])
    return kept, dropped, [*(Problem(str(path), text) for text in source.left_out), *failed]


def audit_text(text: str, path: str = "<string>", settings: AuditSettings | None = None) -> AuditReport:
    """Audit one piece of Python source."""
    settings = settings or AuditSettings()
    rules = load_rules()
    try:
        source = parse(path, text)
    except UnreadableSource as error:
        return AuditReport(files=1, problems=(Problem(path, str(error)),))
    kept, dropped, failed = audit_source(source, [rules[name] for name in settings.active(rules)])
    return AuditReport(tuple(sorted(kept, key=lambda f: f.order)), 1, tuple(failed), dropped)


def audit_source(source: Source, rules: Iterable[Rule]) -> FileResult:
    """(findings, how many were switched off by comments, problems) of one parsed file."""
    if not _relevant(source):
        return [], 0, list(_useless_comments(source))
    rules = [r for r in rules if r.check is not None and mentioned(r.trigger)(source.code)]
    if not rules:
        return [], 0, list(_useless_comments(source))
    context = Context(source)
    kept: dict[tuple[int, int, str], Finding] = {}
    problems = list(_useless_comments(source))
    suppressed = 0
    for rule in rules:
        if rule.check is None:
            continue
        try:
            for finding in rule.check(context):
                if _ignored(source, finding):
                    suppressed += 1
                else:
                    kept.setdefault((finding.line, finding.column, finding.rule), finding)
        except RecursionError:
            problems.append(Problem(source.path, f"{rule.id} could not be checked: the code is nested too deeply"))
    if context.exhausted:
        problems.append(Problem(source.path, "too many names to follow them all: findings of this file may be missing"))
    for line in context.unfinished():
        problems.append(
            Problem(
                source.path, f"too many paths to follow them all from line {line}: R02, R03, R07 and R28 are incomplete"
            )
        )
    return [_in_cell(source, f) for f in kept.values()], suppressed, problems


def _relevant(source: Source) -> bool:
    """Something of the code is about torch or what it is deployed with.

    Strings tell as much of command lines and of `import_module` only.
    """
    if not any(word in source.text for word in _RELEVANT):
        return False
    asked = _RELEVANT if "import_" in source.words else _COMMANDS
    return any(word in source.words for word in _RELEVANT) or any(word in source.code for word in asked)


def _useless_comments(source: Source) -> Iterator[Problem]:
    """Comments that switch nothing off: without a rule, or with one that does not exist."""
    known = load_rules()
    for line, names in source.ignored.items():
        unknown = ", ".join(sorted(names - known.keys()))
        if not names or unknown:
            what = f"{unknown}: no such rule" if unknown else "without a rule"
            yield Problem(
                source.path, f"line {line}: `deploychain: ignore` {what}; write `# deploychain: ignore[R07] reason`"
            )


def _ignored(source: Source, finding: Finding) -> bool:
    """`# deploychain: ignore[R07] reason` at the end of the line, or alone on the line above."""
    here = source.ignored.get(finding.line)
    if here is not None and finding.rule in here:
        return True
    above = source.ignored.get(finding.line - 1)
    if above is not None and finding.rule in above:
        return source.text.split("\n")[finding.line - 2].lstrip().startswith("#")
    return False


def _in_cell(source: Source, finding: Finding) -> Finding:
    """In a notebook the message names the cell, and the line is the line in the cell."""
    if not source.cells or not 0 < finding.line <= len(source.cells):
        return finding
    cell, line = source.cells[finding.line - 1]
    return Finding(
        finding.path,
        line,
        finding.column,
        finding.rule,
        finding.severity,
        f"cell {cell}: {finding.message}",
        finding.fix,
    )

"""All outputs of a gate in one folder, each written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from deploychain.errors import CapabilityError
from deploychain.records import Comparison, to_json
from deploychain.report import html, junit, machine, markdown, sarif
from deploychain.report.sarif import Key
from deploychain.verdicts import GateResult

SUMMARY_BYTES = 900_000  # a GitHub job summary holds 1 MiB a step


def write_text(path: Path, text: str) -> Path:
    """Write a file through a temporary one beside it. Lone surrogates (broken file names) become "?".

    Raises:
        CapabilityError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="\n") as file:
                file.write(text)
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CapabilityError(f"cannot write: {error.strerror}", where=str(path)) from None
    return path


def gate_json(result: GateResult) -> str:
    """The documented JSON, with every check behind it: passes, intervals, methods, limits."""
    document = {
        **result.to_dict(),
        "exit_code": result.exit_code,
        "baseline": result.baseline_path or None,
        "changes": list(result.changes),
        "checks": to_json(result.checks),
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_outputs(
    folder: Path,
    result: GateResult,
    comparison: Comparison | None,
    *,
    limits_file: str = "",
    lines: Mapping[Key, int] | None = None,
) -> list[Path]:
    """gate.json, JUnit, SARIF, Markdown, OpenMetrics and the HTML report.

    Args:
        folder: made if it is not there.
        comparison: None where it could not be read.
        limits_file, lines: where findings without a source line are put.

    Raises:
        CapabilityError: a file cannot be written.
    """
    texts = {
        "gate.json": gate_json(result),
        "gate.junit.xml": junit.render(result),
        "gate.sarif": sarif.render(result, limits_file=limits_file, lines=lines),
        "gate.md": markdown.render(result),
        "gate.metrics.txt": machine.openmetrics(result),
        "report.html": html.render(comparison, result),
    }
    return [write_text(folder / name, text) for name, text in texts.items()]


def append_summary(path: Path, result: GateResult) -> None:
    """Append the Markdown to a GitHub job summary ($GITHUB_STEP_SUMMARY).

    Raises:
        CapabilityError: the file cannot be written.
    """
    try:
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(markdown.render(result, limit=SUMMARY_BYTES) + "\n")
    except OSError as error:
        raise CapabilityError(f"cannot write the job summary: {error.strerror}", where=str(path)) from None

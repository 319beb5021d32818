"""`deploychain layers` and `deploychain diff`: what trtexec and the inspector printed, read and compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from deploychain.cli.app import app

if TYPE_CHECKING:
    from deploychain.engine.evidence import Evidence


@app.command("layers", short_help="Tell which precision each layer really runs in.")
def layers(
    files: list[Path] = typer.Argument(..., help="Logs, layer JSON, profiles, times: any of them, in any order."),
    model: Path | None = typer.Option(None, "--model", help="ONNX file the engine was built from."),
    asked: str | None = typer.Option(None, "--asked", help="Precision asked for: fp32, fp16, bf16, fp8, int8."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    top: int = typer.Option(10, "--top", min=0, help="Rows per table; 0 for all."),
    fail_on: str | None = typer.Option(
        None, "--fail-on", help="Exit 1 on: fallback, possible, unknown (each with those before); 3: cannot be told."
    ),
    run: int | None = typer.Option(None, "--run", help="Which run of the log, counted from 1."),
    profile: int | None = typer.Option(None, "--profile", help="Which optimisation profile."),
) -> None:
    """Tell which precision each layer of an engine runs in, from what TensorRT printed."""
    from deploychain import console
    from deploychain.engine.evidence import read_engines, read_evidence
    from deploychain.engine.failing import answer, parse_fail_on
    from deploychain.engine.report import build_report

    limit = parse_fail_on(fail_on)
    if limit is None:
        engines: tuple[Evidence, ...] = (read_evidence(files, model=model, asked=asked, run=run, profile=profile),)
    else:
        engines = read_engines(files, model=model, asked=asked, run=run, profile=profile)
    evidence = engines[0]
    if as_json:
        console.print_json(evidence.to_json())
    else:
        _print(build_report(evidence, top))
    if not evidence.readable:
        raise typer.Exit(3)
    if limit is not None:
        found = answer(engines, limit)
        if found.met is None:
            console.error(found.why)
            raise typer.Exit(3)
        raise typer.Exit(int(found.met))


@app.command("diff", short_help="Compare two engines or two runs.")
def diff(
    a: Path = typer.Argument(..., help="A file of the first engine, or a folder with its files."),
    b: Path = typer.Argument(..., help="A file of the second engine, or a folder with its files."),
    model: Path | None = typer.Option(None, "--model", help="ONNX file of both engines."),
    asked: str | None = typer.Option(None, "--asked", help="Precision asked for, where the files do not say."),
    anyway: bool = typer.Option(False, "--anyway", help="Compare times even where the conditions differ."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    top: int = typer.Option(10, "--top", min=0, help="Rows per table; 0 for all."),
) -> None:
    """Compare two engines or two runs: precision, fusions, reformats, time."""
    from deploychain import console
    from deploychain.engine.diff import diff_evidence, files_of
    from deploychain.engine.diffreport import build_report
    from deploychain.engine.evidence import read_evidence

    first = read_evidence(files_of(a), model=model, asked=asked)
    second = read_evidence(files_of(b), model=model, asked=asked)
    found = diff_evidence(first, second, anyway=anyway)
    if as_json:
        console.print_json(found.to_json())
    else:
        _print(build_report(found, top))
    if not (first.readable and second.readable):
        raise typer.Exit(3)


def _print(report: object) -> None:
    from deploychain import console
    from deploychain.engine.report import Report, Table

    assert isinstance(report, Report)
    console.out(report.headline, style="bold")
    for block in report.blocks:
        if isinstance(block, Table):
            console.out()
            console.table(block.columns, block.rows, title=block.title, right=block.right, ratio=block.ratio)
        else:
            console.out()
            for line in block:
                console.out(line)

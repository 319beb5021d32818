"""Commands of the chain: run, init, schema."""

from __future__ import annotations

from pathlib import Path

import typer

from deploychain import console
from deploychain.cli.app import app


@app.command("run")
def run_command(
    file: Path = typer.Argument(..., help="The pipeline file."),
    run_dir: Path | None = typer.Option(None, "--run-dir", help="Run folder. Default: runs/NAME beside the file."),
    only: str | None = typer.Option(None, "--only", metavar="STAGE", help="Run this stage alone."),
    first: str | None = typer.Option(None, "--from", metavar="STAGE", help="Run from this stage on."),
    last: str | None = typer.Option(None, "--until", metavar="STAGE", help="Run up to and with this stage."),
    force: list[str] = typer.Option([], "--force", metavar="STAGE", help="Run this stage even if it is cached."),
    sets: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Override a setting: train.epochs=3."),
    dry: bool = typer.Option(False, "--dry-run", help="Say what is cached or stale, and why; run nothing."),
    json_: bool = typer.Option(False, "--json", help="Print one JSON object at the end."),
) -> None:
    """Bring a pipeline up to date, stage by stage."""
    from deploychain import chain
    from deploychain.config import load_pipeline
    from deploychain.report.summary import print_preview, print_run

    console.interrupt_on_sigterm()
    if json_:
        console.set_quiet(True)
    pipeline = load_pipeline(file, sets)
    selection = chain.Selection(only, first, last, tuple(force))
    if dry:
        result = chain.dry_run(pipeline, run_dir=run_dir, selection=selection)
    else:
        result = chain.run(pipeline, run_dir=run_dir, selection=selection, progress=console.progress, note=console.note)
    if not result.stages:
        return  # a torchrun process other than the first: it took part in training, the first one reports
    if json_:
        console.print_json(result.to_dict())
    elif dry:
        print_preview(result)
    else:
        print_run(result)


@app.command("init")
def init_command(
    folder: Path = typer.Argument(Path(), help="Where to write pipeline.yaml and task.py."),
    force: bool = typer.Option(False, "--force", help="Overwrite files that exist."),
) -> None:
    """Write a starter pipeline that runs as it is."""
    from deploychain.starter import write_starter

    for path in write_starter(folder, overwrite=force):
        console.out(f"wrote {path}")
    console.out(f"next: deploychain run {folder / 'pipeline.yaml'}")


@app.command("schema")
def schema_command(
    what: str = typer.Argument("pipeline", help="pipeline, comparison or gate."),
) -> None:
    """Print a JSON Schema, for editors and tools."""
    from deploychain.schema import schema_of

    console.print_json(schema_of(what))

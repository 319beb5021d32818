"""`deploychain audit`: rules over training code, models and ONNX files."""

from __future__ import annotations

from pathlib import Path

import typer

from deploychain import console
from deploychain.cli.app import app


@app.command("audit", short_help="Find what mixed precision will break.")
def audit(
    paths: list[Path] = typer.Argument(None, help="Python files, notebooks or folders."),
    format: str = typer.Option("text", "--format", help="text, json, sarif or github."),
    json: bool = typer.Option(False, "--json", help="The same as --format json."),
    select: str = typer.Option(None, "--select", help="Only these rules: R01,R03."),
    ignore: str = typer.Option(None, "--ignore", help="All but these rules."),
    fail_on: str = typer.Option(None, "--fail-on", help="error (default), warning or note."),
    model: str = typer.Option(None, "--model", help="Also build and check the model of task.py:Task. Runs its code."),
    dtype_map: bool = typer.Option(False, "--dtype-map", help="With --model: dtype of every op under CUDA autocast."),
    onnx: list[Path] = typer.Option(None, "--onnx", help="Also check ONNX files (R09, R19 to R23)."),
    opset: int = typer.Option(None, "--opset", help="The opset that the ONNX files were asked to have (R19)."),
    log: list[Path] = typer.Option(None, "--log", help="Also judge logs: of the monitor, or printed output."),
    explain: str = typer.Option(None, "--explain", help="Explain a rule: R08."),
    demo: bool = typer.Option(False, "--demo", help="With --explain: run its experiment in PyTorch."),
    list_rules: bool = typer.Option(False, "--list-rules", help="List the rules."),
) -> None:
    """Find what will go wrong in mixed-precision training code and models."""
    from deploychain.audit import command
    from deploychain.errors import ConfigError

    if demo and not explain:
        raise ConfigError("which experiment?", where="--demo", remedy="name the rule as well: --explain R08 --demo")
    if explain or list_rules:
        for line in command.explained(explain, demo) if explain else command.rule_list():
            console.out(line)
        return
    request = command.Request(
        paths=tuple(paths or ()), format="json" if json else format, select=select, ignore=ignore, fail_on=fail_on,
        model=model, onnx=tuple(onnx or ()), opset=opset, logs=tuple(log or ()), dtype_map=dtype_map,
    )  # fmt: skip
    result = command.run(request)
    if isinstance(result.output, list):
        for line in result.output:
            console.out(line)
    else:
        console.print_json(result.output)
    if result.unexamined:
        raise ConfigError(
            f"the model was not examined: {'; '.join(result.unexamined)}",
            where=f"--model {model}",
            remedy="correct the task",
        )
    if result.failed:
        raise typer.Exit(1)

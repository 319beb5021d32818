"""Command: doctor."""

from __future__ import annotations

from pathlib import Path

import typer

from deploychain import console
from deploychain.cli.app import app


@app.command("doctor", short_help="Say what this machine can do, and what is missing.")
def doctor_command(
    imports: bool = typer.Option(False, "--imports", help="Also import torch and modelopt, which takes seconds."),
    json_: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Say what this machine can do, what is missing, and the command that fixes it."""
    from deploychain.doctor import diagnose
    from deploychain.records import to_json
    from deploychain.report.doctor import print_diagnosis

    diagnosis = diagnose(Path.cwd(), imports=imports)
    if json_:
        console.print_json(to_json(diagnosis))
    else:
        print_diagnosis(diagnosis)

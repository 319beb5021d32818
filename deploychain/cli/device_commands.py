"""Commands for devices: bundle, device build, device import."""

from __future__ import annotations

from pathlib import Path

import typer

from deploychain import console
from deploychain.cli.app import app

device_app = typer.Typer(help="Build and measure engines on the device that runs them.", no_args_is_help=True)
app.add_typer(device_app, name="device")


@app.command("bundle")
def bundle_command(
    run: Path = typer.Argument(..., help="The run folder, or the pipeline file."),
    output: Path = typer.Option(Path("bundle.tar"), "--output", "-o", help="The file to write."),
    pipeline: Path | None = typer.Option(None, "--pipeline", help="The pipeline file, where it is not ../.. of the run."),
    samples: int = typer.Option(256, "--samples", min=1, help="Test samples that travel."),
    json_: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Pack a finished run for the device: models, plan, profiles, test data with answers."""
    from deploychain.device.bundling import find_pipeline, make_bundle
    from deploychain.records import to_json

    file, run_dir = find_pipeline(run, pipeline)
    packed = make_bundle(file, run_dir, output, samples=samples, note=console.note)
    if json_:
        console.print_json(to_json(packed))
    else:
        console.out(
            f"{packed.path}: engines {', '.join(packed.engines)}; {packed.samples} test samples; "
            f"{packed.size / 1e6:.1f} MB; content {packed.content_sha256[:12]}"
        )

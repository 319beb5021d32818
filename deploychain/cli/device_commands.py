"""Commands for devices: bundle, device build, device import."""

from __future__ import annotations

from pathlib import Path

import typer

from deploychain import console
from deploychain.cli.app import app

device_app = typer.Typer(help="Build and measure engines on the device that runs them.", no_args_is_help=True)
app.add_typer(device_app, name="device")


@app.command("bundle", short_help="Pack a finished run for the device.")
def bundle_command(
    run: Path = typer.Argument(..., help="The run folder, or the pipeline file."),
    output: Path = typer.Option(Path("bundle.tar"), "--output", "-o", help="The file to write."),
    pipeline: Path | None = typer.Option(
        None, "--pipeline", help="The pipeline file, where it is not ../.. of the run."
    ),
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


@device_app.command("build")
def build_command(
    bundle: Path = typer.Argument(..., help="The bundle from `deploychain bundle`."),
    output: Path = typer.Option(Path("device-result.json"), "--output", "-o", help="The result to write."),
    backend: str = typer.Option("auto", "--backend", help="auto, tensorrt, trtexec or tensorrt_rtx."),
    engine: list[str] = typer.Option([], "--engine", help="Only this engine (fp32, fp16, int8); may be repeated."),
    typing_: str = typer.Option("auto", "--typing", help="auto, strong or weak. auto: weak up to TensorRT 10."),
    dla: int | None = typer.Option(None, "--dla", min=0, help="Build for this DLA core, with GPU fallback."),
    cache: Path | None = typer.Option(None, "--cache", help="Engine cache. Default: $DEPLOYCHAIN_ENGINES or ~/.cache."),
    on_mismatch: str = typer.Option("rebuild", "--on-mismatch", help="rebuild or fail, when a cached engine differs."),
    force: bool = typer.Option(False, "--force", help="Build even if a cached engine fits."),
    workspace: int | None = typer.Option(None, "--workspace", min=1, help="Workspace limit in MiB."),
    timeout: float = typer.Option(60.0, "--timeout", min=0.01, help="Minutes per step."),
    seconds: int = typer.Option(5, "--seconds", min=1, help="How long to time each engine."),
    measure: bool = typer.Option(True, "--measure/--no-measure", help="Run the golden data and measure latency."),
    dry: bool = typer.Option(False, "--dry-run", help="Verify the bundle and say what would be done."),
    json_: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Build the engines of a bundle with this device's TensorRT, run the golden data, time and judge them.

    Exit 3: an engine was not built, or failed when it was run or timed. Exit 4: engines were built that this machine
    cannot run; --no-measure asks for the build alone.
    """
    from deploychain.device.backend import read_settings
    from deploychain.device.build import DeviceBuild, verify_bundle
    from deploychain.device.result import write_result
    from deploychain.device.tables import print_planned, print_result
    from deploychain.records import to_json

    console.interrupt_on_sigterm()
    if json_:
        console.set_quiet(True)
    settings = read_settings(
        backend=backend,
        engines=tuple(engine),
        typing=typing_,
        dla_core=dla,
        cache=cache,
        on_mismatch=on_mismatch,
        force=force,
        workspace_mib=workspace,
        timeout_minutes=timeout,
        seconds=seconds,
        measure=measure,
    )
    if dry:
        verify_bundle(bundle)
    job = DeviceBuild(bundle, settings, progress=console.progress, note=console.note)
    if dry:
        planned = job.plan()
        if json_:
            content = {"backend": job.backend.name, "fingerprint": job.fingerprint, "engines": planned}
            console.print_json(to_json(content))
        else:
            print_planned(job.backend.name, job.fingerprint, planned)
        return
    result = job.run(output)
    write_result(result, output)
    if json_:
        console.print_json(to_json(result))
    else:
        print_result(result, output)
    if result.exit_code:
        raise typer.Exit(result.exit_code)


@device_app.command("import")
def import_command(
    result: Path = typer.Argument(..., help="device-result.json, with its device-outputs files beside it."),
    run: Path = typer.Argument(..., help="The run folder that the bundle was made of, or the pipeline file."),
    pipeline: Path | None = typer.Option(None, "--pipeline", help="The pipeline file. Default: in ../.. of the run."),
    json_: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Bring a device's result into its run: a comparison that gate and report read."""
    from deploychain.device.bundling import find_pipeline
    from deploychain.device.importing import import_result
    from deploychain.device.tables import print_imported
    from deploychain.records import to_json

    file, run_dir = find_pipeline(run, pipeline)
    imported = import_result(result, run_dir, pipeline=file, note=console.note)
    if json_:
        console.print_json(to_json(imported))
    else:
        print_imported(imported)


@device_app.command("serve")
def serve_command(
    bundle: Path = typer.Argument(..., help="The bundle."),
    host: str = typer.Option("127.0.0.1", "--host", help="Address of the health page; 0.0.0.0 in a container."),
    port: int = typer.Option(8080, "--port", min=0, max=65535, help="Port of the health page."),
    state: Path | None = typer.Option(None, "--state", help="Default: $DEPLOYCHAIN_STATE, or health.json here."),
    output: Path = typer.Option(Path("device-result.json"), "--output", "-o", help="The result to write."),
    cache: Path | None = typer.Option(None, "--cache", help="Engine cache."),
    backend: str = typer.Option("auto", "--backend", help="auto, tensorrt, trtexec or tensorrt_rtx."),
) -> None:
    """Build the engines that do not fit this device, then tell the health state until stopped."""
    import time

    from deploychain.device.backend import read_settings
    from deploychain.device.health import state_file
    from deploychain.device.serve import serve

    console.interrupt_on_sigterm()
    settings = read_settings(backend=backend, typing="auto", on_mismatch="rebuild", cache=cache)
    try:
        serve(
            bundle,
            settings,
            state_file=state_file(state),
            result_file=output,
            host=host,
            port=port,
            wait=time.sleep,
            note=console.note,
        )
    except KeyboardInterrupt:
        console.note("stopped")


@device_app.command("health")
def health_command(
    state: Path | None = typer.Option(None, "--state", help="Default: $DEPLOYCHAIN_STATE, or health.json here."),
    json_: bool = typer.Option(False, "--json", help="Print one JSON object."),
) -> None:
    """Say how the serving container is: exit 0 when starting, building or ready, 1 when broken."""
    from deploychain.device.health import read_health, state_file
    from deploychain.records import to_json

    health = read_health(state_file(state))
    if json_:
        console.print_json(to_json(health))
    else:
        console.out(" ".join(x for x in (f"{health.state}:" if health.detail else health.state, health.detail) if x))
    if health.state == "broken":
        raise typer.Exit(1)

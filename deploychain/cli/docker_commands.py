"""Commands: docker build, docker run."""

from __future__ import annotations

from pathlib import Path

import typer

from deploychain import console
from deploychain.cli.app import app

docker_app = typer.Typer(help="Images for devices: build and run them.", no_args_is_help=True)
app.add_typer(docker_app, name="docker")

TARGET = typer.Option("auto", "--target", help="jetpack6, jetpack7, x86 or cpu. auto: what fits this machine.")
TOOL = typer.Option("auto", "--tool", help="docker, podman or nerdctl. auto: the first that is installed.")
CONTEXT = typer.Option(None, "--context", help="Source tree with docker/images.toml.")
DRY = typer.Option(False, "--dry-run", help="Print the command, run nothing.")


@docker_app.command("build")
def build_command(target: str = TARGET, tool: str = TOOL, context: Path | None = CONTEXT, dry: bool = DRY) -> None:
    """Build an image from docker/images.toml."""
    from deploychain.device import containers
    from deploychain.machine import look

    folder = containers.find_context(context)
    wanted = containers.suggest_target(look()) if target == "auto" else target
    image = containers.choose_image(containers.read_images(folder), wanted)
    program = containers.choose_tool(tool, installed=not dry)
    command = containers.build_command(program, image, folder, revision=containers.revision_of(folder))
    console.out(containers.shown(command))
    if not dry:
        containers.run_tool(command, action="build", note=console.note)
        console.out(f"built {image.image}")


@docker_app.command("run", context_settings={"ignore_unknown_options": True})
def run_command(
    arguments: list[str] = typer.Argument(None, help="A deploychain command; without one the container serves."),
    bundle: Path | None = typer.Option(None, "--bundle", help="The bundle, mounted read-only."),
    engines: str = typer.Option("deploychain-engines", "--engines", help="Volume or folder of the engine cache."),
    port: int = typer.Option(8080, "--port", min=0, max=65535, help="Host port of the health page; 0: none."),
    target: str = TARGET,
    tool: str = TOOL,
    context: Path | None = CONTEXT,
    dry: bool = DRY,
) -> None:
    """Run an image with the GPU, the engine cache and a bundle."""
    from deploychain.device import containers
    from deploychain.machine import look

    machine = look()
    folder = containers.find_context(context)
    wanted = containers.suggest_target(machine) if target == "auto" else target
    image = containers.choose_image(containers.read_images(folder), wanted)
    if bundle is not None:
        from deploychain.device.bundle import open_bundle

        open_bundle(bundle)  # a wrong file is told here, not by a container that restarts
    program = containers.choose_tool(tool, installed=not dry)
    serving = not arguments
    command = containers.run_command(
        program,
        image,
        machine,
        bundle=bundle,
        engines=engines,
        port=port if serving and port else None,
        arguments=arguments or (),
    )
    console.out(containers.shown(command))
    if not dry:
        status = containers.run_tool(command, action="run", note=console.note)
        if status:
            raise typer.Exit(status)

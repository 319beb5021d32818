"""The command line: one Typer app, one module per command group, and the mapping of errors to exit codes.

Command modules import nothing but typer at module level; the library is imported inside each command, so that
``deploychain --help`` loads no parser, no pydantic and no framework.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from deploychain import console
from deploychain.errors import DeploychainError

app = typer.Typer(
    name="deploychain",
    help="Carry a PyTorch model from AMP training to a TensorRT engine, and prove what each step cost.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        console.out(f"deploychain {version('deploychain')}")
        raise typer.Exit


@app.callback()
def _root(
    debug: bool = typer.Option(False, "--debug", help="Show Python tracebacks."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress, no notes."),
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    if debug:
        os.environ["DEPLOYCHAIN_DEBUG"] = "1"
    console.set_quiet(quiet)


def _register() -> None:
    # Each module registers its commands on import; the order is the order of `--help`.
    from deploychain.cli import chain_commands  # noqa: F401


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point: run a command, print errors in one form, exit with the code of the error's family."""
    _register()
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        app(arguments, standalone_mode=True)
    except DeploychainError as error:
        if os.environ.get("DEPLOYCHAIN_DEBUG"):
            raise
        if "--json" in arguments:
            console.print_json({"error": error.to_dict()})
        else:
            console.error(f"{error.kind} error: {error}")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader (head, less) has gone; Python would complain again while flushing at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        console.error("interrupted")
        sys.exit(130)


if __name__ == "__main__":
    main()

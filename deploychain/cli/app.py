"""The command line: one Typer app, one module per command group, and the mapping of errors to exit codes.

Command modules import nothing but typer at module level; the library is imported inside each command, so that
``deploychain --help`` loads no parser, no pydantic and no framework.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import typer

from deploychain import console
from deploychain.errors import ConfigError, DeploychainError, Interrupted

app = typer.Typer(
    name="deploychain",
    help="Carry a PyTorch model from AMP training to a TensorRT engine, and prove what each step cost.",
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
    debug: bool = typer.Option(False, "--debug", help="Show Python tracebacks."),  # read by main()
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress, no notes."),
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    console.set_quiet(quiet)


def _register() -> None:
    # Each module registers its commands on import; the order is the order of `--help`.
    # isort: off
    from deploychain.cli import chain_commands  # noqa: F401
    from deploychain.cli import layers_commands  # noqa: F401
    from deploychain.cli import plan_commands  # noqa: F401
    from deploychain.cli import audit_commands  # noqa: F401
    from deploychain.cli import gate_commands  # noqa: F401
    from deploychain.cli import device_commands  # noqa: F401
    from deploychain.cli import docker_commands  # noqa: F401
    from deploychain.cli import doctor_commands  # noqa: F401
    # isort: on


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point: run a command, print errors in one form, exit with the code of the error's family."""
    _register()
    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    if "--debug" in arguments:  # wherever it stands: people add it to the command that just failed
        arguments.remove("--debug")
        os.environ["DEPLOYCHAIN_DEBUG"] = "1"
    debug = bool(os.environ.get("DEPLOYCHAIN_DEBUG"))
    try:
        # Not standalone: a usage error comes back here and takes the same form as every other error.
        code = app(arguments, standalone_mode=False)
        if code == Interrupted.exit_code:  # what Typer makes of KeyboardInterrupt
            remedy = "the same command goes on where it stopped" if "run" in arguments else ""
            code = _report(Interrupted("interrupted", remedy=remedy), arguments)
    except DeploychainError as error:
        if debug:
            raise
        code = _report(error, arguments)
    except typer.Abort:
        code = 1
    except BrokenPipeError:
        # The reader (head, less) has gone; Python would complain again while flushing at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:
        usage = getattr(error, "format_message", None)
        if usage is not None and type(error).__name__ == "NoArgsIsHelpError":
            console.out(usage())
            code = 2
        elif usage is not None:
            context = getattr(error, "ctx", None)
            command = context.command_path if context is not None else "deploychain"
            code = _report(ConfigError(usage(), where="command line", remedy=f"see `{command} --help`"), arguments)
        elif debug:
            raise
        else:
            code = _report(_unexpected(error), arguments)
    sys.exit(code if isinstance(code, int) else 0)


def _unexpected(error: Exception) -> DeploychainError:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return DeploychainError(
        f"unexpected {type(error).__name__}: {error}",
        where=f"{last.filename}:{last.lineno}",
        remedy="this is a defect of deploychain: --debug shows the traceback",
    )


def _report(error: DeploychainError, arguments: Sequence[str]) -> int:
    if "--json" in arguments:
        console.print_json({"error": error.to_dict()})
    else:
        console.error(str(error) if isinstance(error, Interrupted) else f"{error.kind} error: {error}")
    return error.exit_code


if __name__ == "__main__":
    main()

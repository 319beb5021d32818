"""What the device container does: build what does not fit, then tell its state until it is stopped.

The states are those of `deploychain.device.health`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from deploychain.console import Progress
from deploychain.device.backend import DeviceSettings
from deploychain.device.build import DeviceBuild
from deploychain.device.health import RENEW_SECONDS, HealthBoard
from deploychain.device.output import check_output
from deploychain.device.result import DeviceResult, write_result
from deploychain.device.versions import Version
from deploychain.errors import DeploychainError
from deploychain.machine import Machine, look


def serve(
    bundle: Path,
    settings: DeviceSettings,
    *,
    state_file: Path,
    result_file: Path,
    host: str,
    port: int,
    wait: Callable[[float], None],
    note: Callable[[str], None] = lambda text: None,
) -> NoReturn:
    """Build, publish the state, and stay until interrupted. A failure is a state, not an exit.

    Args:
        wait: sleeps for the given seconds.

    Raises:
        ConfigError: the state file cannot be written.
        CapabilityError: the port cannot be had.
        KeyboardInterrupt: it was stopped; the state says so.
    """
    check_output(state_file, "--state")
    board = HealthBoard(state_file)
    board.set("starting")
    try:
        with board.page(host, port) as bound:
            note(f"health on http://{host}:{bound}/health and in {state_file}")
            _bring_up(bundle, settings, board, result_file, note)
            while True:
                wait(RENEW_SECONDS)
                board.renew()
    finally:
        if board.health.state != "broken":  # else the reason stays
            board.set("broken", detail="the server has stopped", remedy="start `deploychain device serve`")


def _bring_up(
    bundle: Path, settings: DeviceSettings, board: HealthBoard, result_file: Path, note: Callable[[str], None]
) -> None:
    try:
        machine = look()
        notes = misfits(machine, os.environ)
        for line in notes:
            note(line)
        job = DeviceBuild(bundle, settings, machine=machine, progress=_announce(board, notes), note=note)
        result = job.run(result_file)
        write_result(result, result_file)
    except DeploychainError as error:
        note(f"broken: {error}")
        board.set("broken", detail=error.message, remedy=error.remedy)
        return
    except Exception as error:  # the page must say it, whatever it is
        note(f"broken: {type(error).__name__}: {error}")
        board.set("broken", detail=f"unexpected {type(error).__name__}: {error}")
        return
    _conclude(result, board, result_file, notes)


def _conclude(result: DeviceResult, board: HealthBoard, result_file: Path, notes: tuple[str, ...]) -> None:
    engines = {engine.name: engine.status for engine in result.engines}
    failed = [engine for engine in result.engines if engine.status == "failed"]
    if failed:
        detail = "; ".join(f"{e.name}: {e.report.reason}" for e in failed)
        board.set("broken", detail=detail, remedy=failed[0].remedy, engines=engines, notes=notes)
        return
    # Built is not enough: an engine that cannot be run is none to serve.
    silent = [e for e in result.engines if e.evaluation is not None and not e.evaluation.ran]
    if silent:
        detail = "; ".join(
            f"{e.name} was built and does not run: {e.evaluation.reason}" for e in silent if e.evaluation
        )
        board.set("broken", detail=detail, engines=engines, result=str(result_file), notes=notes)
    else:
        board.set("ready", engines=engines, result=str(result_file), notes=notes)


def _announce(board: HealthBoard, notes: tuple[str, ...]) -> Callable[[str], Any]:
    """A progress reporter that writes to the board."""

    @contextmanager
    def reporter(label: str) -> Iterator[Progress]:
        board.set("building", detail=label, notes=notes)

        class Report:
            def update(self, done: int, total: int | None = None, **fields: object) -> None:
                words = " ".join(f"{k} {v}" for k, v in fields.items())
                board.set("building", quickly=True, detail=f"{label}: {words} ({done} s)", notes=notes)

        yield Report()

    return reporter


def misfits(machine: Machine, environment: Mapping[str, str]) -> tuple[str, ...]:
    """What of the image does not fit the host: the image's own claims (DEPLOYCHAIN_L4T) against what is seen."""
    wanted, l4t = environment.get("DEPLOYCHAIN_L4T", ""), machine.l4t
    if not wanted or l4t is None:
        return ()
    if not in_range(l4t, wanted):
        image = environment.get("DEPLOYCHAIN_IMAGE", "this image")
        return (f"the host is L4T {l4t} and {image} is made for {wanted}: use the image for this JetPack",)
    return ()


def in_range(version: str, wanted: str) -> bool:
    """Whether ``36.4.3`` lies in ``>=36.4,<37``."""
    tests = {
        ">=": lambda a, b: a >= b,
        "<=": lambda a, b: a <= b,
        "<": lambda a, b: a < b,
        ">": lambda a, b: a > b,
        "==": lambda a, b: a == b,
    }
    have = _parts(version)
    for part in wanted.split(","):
        found = re.fullmatch(r"\s*(>=|<=|<|>|==)\s*([\d.]+)\s*", part)
        if found is None or not tests[found.group(1)](have, _parts(found.group(2))):
            return False
    return True


def _parts(text: str) -> tuple[int, ...]:
    version = Version.parse(text if "." in text else f"{text}.0")
    return tuple(max(0, p) for p in (version.major, version.minor, version.patch))

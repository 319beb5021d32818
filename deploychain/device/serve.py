"""What the device container does: build what does not fit, then tell its state until it is stopped.

The state is one JSON file (for `deploychain device health`, which Docker's HEALTHCHECK runs) and one HTTP page:

    starting, building   503 on /health, healthy for Docker: a first build takes minutes and must not be restarted
    ready                200
    broken               500 with the reason and the remedy; the process stays, so that the page can be read
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, NoReturn

from deploychain.console import Progress
from deploychain.device.backend import DeviceSettings
from deploychain.device.build import DeviceBuild
from deploychain.device.output import check_output
from deploychain.device.result import DeviceResult, write_result
from deploychain.device.versions import Version
from deploychain.errors import CapabilityError, DeploychainError
from deploychain.machine import Machine, look

State = Literal["starting", "building", "ready", "broken"]
HEALTH_SCHEMA = "deploychain.health/1"
_HTTP = {"starting": 503, "building": 503, "ready": 200, "broken": 500}
# A live process renews its state; an older one has died or hangs.
STALE_SECONDS, RENEW_SECONDS = 120.0, 30.0


@dataclass(frozen=True, slots=True)
class Health:
    """The state in hand."""

    state: State
    detail: str = ""  # engine and phase while building; the reason when broken
    remedy: str = ""
    elapsed: float = 0.0  # seconds since the process started
    engines: Mapping[str, str] = field(default_factory=dict)  # name -> built, cached, failed
    result: str = ""  # the device result, when ready
    notes: tuple[str, ...] = ()
    updated: float = 0.0  # seconds since the epoch
    schema: str = HEALTH_SCHEMA


class HealthBoard:
    """Holds the state, writes it to the file, and answers over HTTP."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._start = time.monotonic()
        self._lock = threading.Lock()
        self._last = 0.0
        self.health = Health("starting")

    def set(self, state: State, *, quickly: bool = False, **more: Any) -> None:
        """Change the state. ``quickly``: a sign of life, written once a second at most."""
        with self._lock:
            now = time.monotonic()
            if quickly and now - self._last < 1.0:
                return
            self._last = now
            self.health = Health(state, elapsed=round(now - self._start, 1), updated=time.time(), **more)
            self._write()

    def renew(self) -> None:
        """A sign of life: the state is as it was."""
        with self._lock:
            self.health = replace(self.health, updated=time.time())
            self._write()

    def _write(self) -> None:
        part = self._file.with_name(f".{self._file.name}.part")
        # A full disk must not end the process: the page goes on, and the file grows stale, which counts as broken.
        with suppress(OSError):
            part.write_text(json.dumps(asdict(self.health)) + "\n", encoding="utf-8")
            part.replace(self._file)

    @contextmanager
    def page(self, host: str, port: int) -> Iterator[int]:
        """Answer GET /health (any path) while the body runs; yields the port.

        Raises:
            CapabilityError: the port cannot be had.
        """
        board = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                health = board.health
                body = (json.dumps(asdict(health), indent=1) + "\n").encode()
                self.send_response(_HTTP[health.state])
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                if health.state in ("starting", "building"):
                    self.send_header("Retry-After", "10")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                return

        try:
            server = ThreadingHTTPServer((host, port), Handler)
        except OSError as error:
            raise CapabilityError(
                f"cannot listen on {host}:{port}: {error.strerror}", remedy="choose another with --port"
            ) from None
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            server.server_close()


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


def read_health(file: Path, *, now: float | None = None) -> Health:
    """The state that a serving process wrote; broken where there is none, or where it has stopped renewing it."""
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
        health = Health(**{**raw, "notes": tuple(raw.get("notes", ()))})
    except (OSError, ValueError, TypeError) as error:
        return Health("broken", detail=f"no state in {file}: {error}", remedy="start `deploychain device serve`")
    age = (time.time() if now is None else now) - health.updated
    if health.state != "broken" and age > STALE_SECONDS:
        detail = f"no sign of life for {age:.0f} s while {health.state} ({health.detail})"
        return Health("broken", detail=detail, remedy="look at the container's log")
    return health


def state_file(given: Path | None) -> Path:
    """``--state``, else ``$DEPLOYCHAIN_STATE``, else health.json here."""
    return given or Path(os.environ.get("DEPLOYCHAIN_STATE") or "health.json")

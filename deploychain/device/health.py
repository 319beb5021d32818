"""The state of the device container: one JSON file and one HTTP page. Light to import: the health check runs often.

The state is one JSON file (for `deploychain device health`, which Docker's HEALTHCHECK runs) and one HTTP page:

    starting, building   503 on /health, healthy for Docker: a first build takes minutes and must not be restarted
    ready                200
    broken               500 with the reason and the remedy; the process stays, so that the page can be read
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

from deploychain.errors import CapabilityError

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

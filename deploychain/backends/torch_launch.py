"""Start a training in several processes through torchrun, and hear what they have to say.

Workers write events as JSON lines to a file in the scratch folder; what they print goes to a file beside it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deploychain.console import Progress
from deploychain.errors import ArtifactError, CapabilityError, ConfigError, DeploychainError, StageError

_KINDS: dict[str, type[DeploychainError]] = {
    e.kind: e for e in (ConfigError, StageError, ArtifactError, CapabilityError)
}


class Channel:
    """The worker's end: progress and notes of rank 0, and the error of any rank."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._events = folder / "events.jsonl"
        self._error = folder / f"error-{rank}.json"
        self._rank = rank
        self._last = 0.0

    def update(self, done: int, total: int | None = None, **fields: object) -> None:
        """Progress, at most ten times a second."""
        now = time.monotonic()
        if now - self._last >= 0.1 or done == total:
            self._last = now
            self._send({"done": done, "total": total, "fields": fields})

    def note(self, text: str) -> None:
        self._send({"note": text})

    def fail(self, error: DeploychainError, expected: bool) -> None:
        """Leave the error for the parent. ``expected``: this process failed by itself, not because another did."""
        record = {**error.to_dict(), "rank": self._rank, "own": expected}
        temporary = self._error.with_suffix(".tmp")
        temporary.write_text(json.dumps(record), encoding="utf-8")
        temporary.replace(self._error)

    def _send(self, event: Mapping[str, Any]) -> None:
        if self._rank == 0:
            with self._events.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(event) + "\n")


def die_with_parent() -> None:
    """End this process when the one that started the training is gone: its end of standard input closes then."""

    def wait() -> None:
        # The plain descriptor: a thread inside sys.stdin would trouble the interpreter's end.
        while os.read(0, 4096):
            pass
        os._exit(130)

    threading.Thread(target=wait, daemon=True).start()


def launch(
    processes: int,
    module: str,
    job: Mapping[str, Any],
    scratch: Path,
    progress: Progress,
    note: Callable[[str], None],
) -> None:
    """Run ``module`` in several processes and wait for them.

    Args:
        job: JSON for the workers, handed over as a file.
        scratch: where job, events and errors are exchanged.

    Raises:
        DeploychainError: what the first failing process reported, as an error of the same family.
        StageError: a process ended without a word.
    """
    folder = scratch / "processes"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    job_file = folder / "job.json"
    job_file.write_text(json.dumps(job), encoding="utf-8")
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes),
        "--max-restarts", "0", "-m", module, str(job_file),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with (folder / "output.txt").open("wb") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
        try:
            position = 0
            while child.poll() is None:
                time.sleep(0.1)
                position = _relay(folder / "events.jsonl", position, progress, note)
            _relay(folder / "events.jsonl", position, progress, note)
        finally:
            if child.stdin is not None:
                child.stdin.close()
            if child.poll() is None:
                child.terminate()
                try:
                    child.wait(30)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()
    if child.returncode != 0:
        raise _error_of(folder, processes, child.returncode)


def _relay(path: Path, position: int, progress: Progress, note: Callable[[str], None]) -> int:
    """Hand on whole lines from ``position`` on; returns the new position."""
    try:
        with path.open("rb") as stream:
            stream.seek(position)
            for line in stream:
                if not line.endswith(b"\n"):
                    break
                position += len(line)
                event = json.loads(line)
                if "note" in event:
                    note(event["note"])
                else:
                    progress.update(event["done"], event["total"], **event["fields"])
    except FileNotFoundError:
        pass
    return position


def _error_of(folder: Path, processes: int, code: int) -> DeploychainError:
    """The error that started it: a process's own before those that only lost their peer."""
    records = [json.loads(p.read_text(encoding="utf-8")) for p in sorted(folder.glob("error-*.json"))]
    records.sort(key=lambda r: (not r["own"], r["rank"]))
    if records:
        first = records[0]
        kind = _KINDS.get(first["kind"], StageError)
        where = f"process {first['rank']} of {processes}" + (f", {first['where']}" if first["where"] else "")
        return kind(first["message"], where=where, remedy=first["remedy"])
    return StageError(
        f"the training processes ended with code {code} and reported no error",
        where=f"{processes} processes",
        remedy=f"their output is in {folder / 'output.txt'}",
    )

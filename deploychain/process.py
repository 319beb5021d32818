"""Run a long program, watch it, and be sure that it and its children are gone afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import deploychain
from deploychain.errors import StageError

_POLL_SECONDS = 0.05
# A killed process ends when it is next scheduled, or when the driver call it is in returns.
_GONE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended. ``status`` is negative for a signal, as in `subprocess`."""

    status: int
    timed_out: bool
    seconds: float
    peak_mib: int

    @property
    def signal_name(self) -> str:
        """SIGKILL for -9 and for a shell's 137; empty where no signal ended it."""
        number = -self.status if self.status < 0 else self.status - 128 if self.status > 128 else 0
        return signal.Signals(number).name if number in set(signal.Signals) else ""

    @property
    def killed_for_memory(self) -> bool:
        """SIGKILL that was not ours: what the kernel sends when memory runs out."""
        return not self.timed_out and self.signal_name == "SIGKILL"


def watch(
    command: Sequence[str],
    log: Path,
    *,
    timeout: float,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    on_tick: Callable[[float, int], None] | None = None,
) -> Ended:
    """Run a program to its end or its time limit, its output going to a file.

    Args:
        log: standard output and standard error, in the order in which they were written.
        timeout: seconds after which the whole process group is killed.
        on_tick: called often with the elapsed seconds and the resident memory in MiB.

    Raises:
        StageError: the program cannot be started.
    """
    peak = 0
    with log.open("wb") as stream:
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=None if environment is None else dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise StageError(f"{command[0]} does not start: {error.strerror}", where=command[0]) from None
        start = time.monotonic()
        timed_out = False
        try:
            # Not reaped before its group is killed: until then no other process can have its number.
            while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                elapsed = time.monotonic() - start
                memory = resident_mib(process.pid)
                peak = max(peak, memory)
                if elapsed > timeout:
                    timed_out = True
                    break
                if on_tick is not None:
                    on_tick(elapsed, memory)
                time.sleep(_POLL_SECONDS)
        finally:
            # Time is up, Ctrl-C, or the program ended and may have left children behind.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            seconds = time.monotonic() - start  # the program's own; what it left behind may take longer to go
            _wait_until_gone(process.pid)
        return Ended(process.returncode, timed_out, seconds, peak)


def _wait_until_gone(group: int) -> None:
    """Wait until no process of a killed group runs on: a build that follows would share its memory."""
    deadline = time.monotonic() + _GONE_SECONDS
    while _has_running(group) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _has_running(group: int) -> bool:
    """Whether a process of the group still runs: a zombie, not yet reaped, holds nothing. False without /proc."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # After the name in brackets: state, parent, process group (proc_pid_stat(5)).
            state, _, of_group = path.read_text(errors="replace").rpartition(")")[2].split()[:3]
        except (OSError, ValueError):  # it ended while we looked
            continue
        if int(of_group) == group and state not in "ZX":
            return True
    return False


def package_environment() -> dict[str, str]:
    """Our environment, with this package importable from any working directory, also where it is not installed."""
    root = str(Path(deploychain.__file__).resolve().parent.parent)
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{known}" if known else root}


def resident_mib(pid: int) -> int:
    """Memory that a process holds now; 0 where it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    line = next((x for x in status.splitlines() if x.startswith("VmRSS:")), "VmRSS: 0 kB")
    return int(line.split()[1]) // 1024

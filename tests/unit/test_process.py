from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deploychain import process
from deploychain.errors import StageError
from deploychain.process import _has_running, watch

PYTHON = sys.executable


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_output_and_status(tmp_path: Path) -> None:
    code = "import sys; print('out', flush=True); print('err', file=sys.stderr); raise SystemExit(3)"
    ended = watch([PYTHON, "-c", code], tmp_path / "log", timeout=60, folder=tmp_path)
    assert (ended.status, ended.timed_out, ended.signal_name) == (3, False, "")
    assert (tmp_path / "log").read_text() == "out\nerr\n"


def test_children_left_behind_are_ended(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid)"
    )
    ended = watch([PYTHON, "-c", code], tmp_path / "log", timeout=60, folder=tmp_path)
    assert ended.status == 0
    assert not alive(int((tmp_path / "log").read_text()))


def test_a_group_with_a_running_child_is_seen_and_one_of_zombies_is_not() -> None:
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        assert _has_running(child.pid)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended and not reaped
        assert not _has_running(child.pid)
    finally:
        child.kill()
        child.wait()


def test_waiting_for_what_is_left_is_no_time_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_wait_until_gone", lambda _group: time.sleep(0.3))
    start = time.monotonic()
    ended = watch(["true"], tmp_path / "log", timeout=60, folder=tmp_path)
    assert time.monotonic() - start - ended.seconds >= 0.3


def test_interruption_ends_the_program(tmp_path: Path) -> None:
    def stop(_elapsed: float, _memory: int) -> None:
        raise KeyboardInterrupt

    code = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with pytest.raises(KeyboardInterrupt):
        watch([PYTHON, "-c", code], tmp_path / "log", timeout=60, folder=tmp_path, on_tick=stop)
    written = tmp_path / "pid"
    assert not written.exists() or not written.read_text() or not alive(int(written.read_text()))


@pytest.mark.parametrize(
    ("status", "name", "memory"), [(137, "SIGKILL", True), (139, "SIGSEGV", False), (1, "", False)]
)
def test_a_shells_status_names_the_signal_too(tmp_path: Path, status: int, name: str, memory: bool) -> None:
    code = f"raise SystemExit({status})"
    ended = watch([PYTHON, "-c", code], tmp_path / "log", timeout=60, folder=tmp_path)
    assert (ended.signal_name, ended.killed_for_memory) == (name, memory)


def test_memory_is_seen(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    code = (
        "import os, time; x = bytearray(200 << 20); x[::4096] = b'x' * len(x[::4096])\n"
        "while not os.path.exists('seen'): time.sleep(0.02)"
    )

    def look(_elapsed: float, memory: int) -> None:
        if memory > 200:
            seen.touch()

    ended = watch([PYTHON, "-c", code], tmp_path / "log", timeout=60, folder=tmp_path, on_tick=look)
    assert ended.status == 0 and ended.peak_mib > 200


def test_a_missing_program_is_told(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="does not start"):
        watch(["/no/such/trtexec"], tmp_path / "log", timeout=1, folder=tmp_path)

"""The only module that prints: tables, progress, messages, JSON.

Results go to standard output, everything else (progress, notes, errors) to standard error, so that
``deploychain ... --json | jq`` always works. Tables fit 100 columns. Colour only on terminals.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WIDTH = 100
_state: dict[str, bool] = {"quiet": False}


def set_quiet(quiet: bool) -> None:
    """Silence progress and notes (``--json``, ``--quiet``); errors and results are still printed."""
    _state["quiet"] = quiet


def _console(stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDTH
    console = Console(stderr=stderr, width=width, highlight=False, soft_wrap=False)
    if console.width > WIDTH:
        console.width = WIDTH
    return console


def _as_text(text: str) -> RenderableType:
    """Names of layers and files are data: square brackets in them are never markup, control characters never sent."""
    from rich.text import Text

    return Text(printable(text))


def printable(text: str) -> str:
    """Replace control characters by visible escapes, so that a hostile name cannot drive the terminal."""
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def out(text: str = "", *, style: str = "") -> None:
    """Print a result line on standard output, unwrapped (a path must survive copy and paste)."""
    _console(stderr=False).print(_as_text(text), style=style or None, soft_wrap=True)


def note(text: str, *, style: str = "dim") -> None:
    """Print a line about progress or circumstances on standard error."""
    if not _state["quiet"]:
        _console(stderr=True).print(_as_text(text), style=style, soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning on standard error."""
    if not _state["quiet"]:
        _console(stderr=True).print(_as_text(f"warning: {text}"), style="yellow", soft_wrap=True)


def error(text: str) -> None:
    """Print an error on standard error; never silenced."""
    _console(stderr=True).print(_as_text(text), style="bold red", soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one JSON document on standard output. Callers pass values through `records.to_json` first."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    right: Sequence[str] = (),
    styles: Mapping[int, str] | None = None,
    ratio: str = "",
) -> None:
    """Print a table of at most 100 columns.

    Args:
        columns: headings.
        rows: cell texts, taken literally.
        title: printed above, left-aligned.
        right: headings of the columns to align right (numbers).
        styles: row index -> rich style, for the rows that matter.
        ratio: heading of the one column that may wrap when the table is too wide.
    """
    from rich import box
    from rich.table import Table

    made = Table(
        box=box.SIMPLE_HEAD,
        title=title or None,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for name in columns:
        made.add_column(
            name,
            justify="right" if name in right else "left",
            no_wrap=bool(ratio) and name != ratio,
            overflow="fold",
        )
    for index, row in enumerate(rows):
        made.add_row(*(_as_text(cell) for cell in row), style=(styles or {}).get(index))
    _console(stderr=False).print(made)


class Progress(Protocol):
    """What a long task reports to: safe to call thousands of times a second."""

    def update(self, done: int, total: int | None = None, **fields: object) -> None: ...


class NoProgress:
    """Discards everything: library use, tests, `--json`."""

    def update(self, done: int, total: int | None = None, **fields: object) -> None:
        return None


@contextmanager
def silent(label: str) -> Iterator[Progress]:
    """A progress reporter that reports nowhere."""
    yield NoProgress()


class _BarProgress:
    """A bar on terminals; elsewhere one line at most every ten seconds, so that CI logs stay readable."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._start = self._last = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as RichProgress

            self._bar = RichProgress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[info]}"),
                console=_console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(label, total=None, info="")

    def update(self, done: int, total: int | None = None, **fields: object) -> None:
        now = time.monotonic()
        if self._bar is not None:
            if now - self._last >= 0.1 or done == total:
                self._last = now
                self._bar.update(self._task, completed=done, total=total, info=_fields(fields))
        elif now - self._last >= 10.0:
            self._last = now
            of = total if total is not None else "?"
            note(f"{self._label}: {done}/{of} {_fields(fields)} ({now - self._start:.0f} s)")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _fields(fields: Mapping[str, object]) -> str:
    return "  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in fields.items())


@contextmanager
def progress(label: str) -> Iterator[Progress]:
    """A progress reporter for the body of a ``with`` statement."""
    if _state["quiet"]:
        yield NoProgress()
        return
    bar = _BarProgress(label)
    try:
        yield bar
    finally:
        bar.close()


def interrupt_on_sigterm() -> None:
    """Let SIGTERM stop a run as Ctrl-C does, so that temporary files are cleaned up."""
    import signal

    def stop(signum: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)

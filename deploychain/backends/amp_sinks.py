"""Where the monitor writes: JSON lines, and TensorBoard scalars where it is installed."""

from __future__ import annotations

import contextlib
import json
import warnings
from pathlib import Path
from typing import IO, Any


class Sinks:
    """Both sinks of one rank. Without a path nothing is written and the monitor only keeps its summary."""

    def __init__(self, path: Path | str | None, rank: int | None, tensorboard: bool | None) -> None:
        self.path = _rank_path(Path(path), rank) if path is not None else None
        self._file: IO[str] | None = None
        self._writer: Any = None
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("w", encoding="utf-8")
        if tensorboard is not False and not rank:
            self._writer = _summary_writer(self.path.with_suffix(".tensorboard"), required=tensorboard is True)

    def write(self, record: dict[str, Any]) -> None:
        """One line, flushed: a killed run keeps every line but perhaps the last.

        Where the file can no longer be written (a full disk), this says so once and the training goes on.
        """
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(record, allow_nan=False) + "\n")
            self._file.flush()
        except OSError as error:
            warnings.warn(f"the monitor's log {self.path} ends here: {error.strerror}", RuntimeWarning, stacklevel=2)
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def scalar(self, tag: str, value: float, step: int) -> None:
        if self._writer is not None:
            self._writer.add_scalar(tag, value, step)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _rank_path(path: Path, rank: int | None) -> Path:
    return path if rank is None else path.with_name(f"{path.stem}.rank{rank}{path.suffix}")


def _summary_writer(folder: Path, *, required: bool) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        if required:
            from deploychain.errors import CapabilityError

            raise CapabilityError(
                "TensorBoard is not installed", where="monitor(tensorboard=True)", remedy="pip install tensorboard"
            ) from None
        return None
    return SummaryWriter(str(folder))

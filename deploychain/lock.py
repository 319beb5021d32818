"""Hold a folder for one process. The lock is the kernel's: it is gone when the process dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploychain.errors import CapabilityError


@contextmanager
def folder_lock(folder: Path, *, name: str, busy: str, elsewhere: str, otherwise: str) -> Iterator[None]:
    """Make the folder and hold it for the body of a ``with`` statement.

    Args:
        name: what the folder is, for "cannot write the NAME".
        busy: what another process does there; ``{holder}`` is its process id.
        elsewhere: the remedy where the folder cannot be written.
        otherwise: the remedy where it is held.

    Raises:
        CapabilityError: the folder cannot be written, or another process holds it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise CapabilityError(
            f"cannot write the {name}: {error.strerror}", where=str(folder), remedy=elsewhere
        ) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            raise CapabilityError(busy.format(holder=holder), where=str(folder), remedy=otherwise) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)

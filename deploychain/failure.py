"""Any exception of a stage as one error of the tree: what happened, where, and what to do."""

from __future__ import annotations

import errno
import shutil
import traceback
from pathlib import Path

from deploychain.errors import CapabilityError, DeploychainError, StageError
from deploychain.task import place_in


def translate(error: BaseException, stage: str, task_file: Path | None, root: Path) -> DeploychainError:
    """Any exception of a stage, as one line of what, where and what to do."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    full = full or "No space left" in str(error)  # also where a stage has put it in words of its own
    if isinstance(error, DeploychainError) and not full:
        if not error.where:
            error.where = stage
        return error
    text = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
    if isinstance(error, SystemExit):
        text = f"sys.exit({error.code!r})"
    free = shutil.disk_usage(root).free
    if full or "PytorchStreamWriter failed" in text or free < 1 << 16:
        return CapabilityError(
            f"the disk is full ({free / 1e6:.1f} MB free) while {stage} was writing",
            where=str(root),
            remedy="free some space or choose another disk with --run-dir; finished stages are kept",
        )
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) and _inside(error, root):
        return CapabilityError(
            f"cannot write the run folder: {error.strerror}",
            where=str(error.filename),
            remedy="choose one with --run-dir",
        )
    if isinstance(error, MemoryError) or "out of memory" in text.lower():
        return CapabilityError(f"out of memory: {text}", where=stage, remedy="lower batch_size, or use another device")
    place = place_in(error, task_file)
    if place:
        return StageError(f"the task raised {text}", where=f"{stage}, {place}", remedy="--debug shows the traceback")
    last = traceback.extract_tb(error.__traceback__)[-1]
    return StageError(
        f"{text} (raised in {Path(last.filename).name}:{last.lineno})",
        where=stage,
        remedy="--debug shows the traceback",
    )


def _inside(error: OSError, root: Path) -> bool:
    return isinstance(error.filename, str) and Path(error.filename).absolute().is_relative_to(root.absolute())

"""Training state on disk: written whole or not at all, and never trusted unread."""

from __future__ import annotations

import errno
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from deploychain.artifact import sha256_of
from deploychain.errors import ArtifactError

CHECKPOINT_FORMAT = "deploychain.checkpoint/1"
INDEX = "resume.json"


def write_atomically(path: Path, data: bytes) -> None:
    """Write to a neighbour, flush to the disk, then take the place of ``path``."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def save_state(path: Path, state: Mapping[str, Any]) -> None:
    """`torch.save`, atomically. Only tensors, numbers, strings and containers of them: it must load weights_only."""
    buffer = io.BytesIO()
    torch.save(dict(state), buffer)
    write_atomically(path, buffer.getbuffer())  # type: ignore[arg-type]


def load_state(path: Path) -> Any:
    """`torch.load` with ``weights_only=True`` on the CPU: nothing in the file is executed.

    Raises:
        ArtifactError: missing, damaged, cut, or holding pickled Python objects.
    """
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise ArtifactError("the checkpoint does not exist", where=str(path), remedy="check the path") from None
    except OSError as error:
        if error.errno == errno.EINVAL:  # torch seeks before the beginning of a cut archive
            raise _damaged(path, "it is cut") from None
        raise ArtifactError(
            f"cannot read the checkpoint: {error.strerror or error}", where=str(path), remedy="check its permissions"
        ) from None
    except pickle.UnpicklingError as error:
        text = str(error)
        if any(word in text for word in ("Unsupported global", "Unsupported class", "Unsupported operand", "GLOBAL ")):
            found = text.partition("GLOBAL ")[2].split(" ")[0] if "GLOBAL " in text else "Python objects"
            raise ArtifactError(
                f"the checkpoint holds pickled Python objects ({found}), which are never executed",
                where=str(path),
                remedy="save model.state_dict() instead of the model, with torch.save or safetensors",
            ) from None
        raise _damaged(path, text) from None
    except (RuntimeError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise _damaged(path, str(error)) from None


def _damaged(path: Path, text: str) -> ArtifactError:
    reason = " ".join(text.split())[:120] or "unexpected end"
    return ArtifactError(
        f"not a readable torch checkpoint, or damaged: {reason}", where=str(path), remedy="save or download it again"
    )


class ResumeStore:
    """The last finished epoch of a training, in a scratch folder.

    A new epoch goes into a file of its own; ``resume.json`` names it together with its sha256 and is replaced last,
    so that a kill at any moment leaves either the former or the new epoch, complete.
    """

    def __init__(self, folder: Path, note: Callable[[str], None]) -> None:
        self.folder, self.note = folder, note

    def save(self, epoch: int, state: Mapping[str, Any]) -> None:
        """Keep the state after ``epoch`` finished epochs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"epoch-{epoch:04d}.pt"
        save_state(path, state)
        record = {"file": path.name, "epoch": epoch, "sha256": sha256_of(path)}
        write_atomically(self.folder / INDEX, json.dumps(record).encode())
        for old in self.folder.glob("epoch-*.pt"):
            if old != path:
                old.unlink(missing_ok=True)

    def load(self) -> dict[str, Any] | None:
        """The last state, or None. A damaged one is told to the user and left unused."""
        index = self.folder / INDEX
        if not index.is_file():
            return None
        try:
            record = json.loads(index.read_text(encoding="utf-8"))
            path = self.folder / Path(str(record["file"])).name
            if not path.is_file() or sha256_of(path) != record["sha256"]:
                raise ArtifactError("its bytes are not those that were written", where=str(path))
            state = load_state(path)
            if not isinstance(state, dict) or state.get("format") != CHECKPOINT_FORMAT:
                raise ArtifactError(f"it is not of format {CHECKPOINT_FORMAT}", where=str(path))
        except (ArtifactError, OSError, ValueError, KeyError, TypeError) as error:
            self.note(f"the interrupted training's checkpoint is damaged and not used; training starts anew: {error}")
            return None
        return state

    def clear(self) -> None:
        """Forget the state (the training is finished and published)."""
        (self.folder / INDEX).unlink(missing_ok=True)
        for old in self.folder.glob("epoch-*.pt"):
            old.unlink(missing_ok=True)

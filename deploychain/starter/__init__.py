"""`deploychain init`: a starter pipeline that runs as it is, to be filled with the user's model and data."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from deploychain.errors import CapabilityError, ConfigError
from deploychain.workspace import write_text

_FILES = {"pipeline.yaml": "pipeline.yaml.txt", "task.py": "task.py.txt"}


def write_starter(folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Write pipeline.yaml and task.py into a folder, which is made if needed.

    Returns:
        the paths written.

    Raises:
        ConfigError: a file exists and ``overwrite`` is false; nothing is written then.
        CapabilityError: the folder cannot be written.
    """
    there = [name for name in _FILES if (folder / name).exists()]
    if there and not overwrite:
        raise ConfigError(
            f"{', '.join(there)} exists already", where=str(folder), remedy="choose another folder, or use --force"
        )
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, source in _FILES.items():
            write_text(folder / name, files(__package__).joinpath(source).read_text(encoding="utf-8"))
            written.append(folder / name)
    except OSError as error:
        raise CapabilityError(f"cannot write: {error.strerror}", where=str(folder)) from None
    return written

"""Where a result may go: found out before the work that makes it."""

from __future__ import annotations

import os
from pathlib import Path

from deploychain.errors import ConfigError


def check_output(path: Path, option: str = "--output") -> None:
    """
    Args:
        option: by which the user named it.

    Raises:
        ConfigError: the path is a folder, or its folder is missing or cannot be written.
    """
    parent = path.absolute().parent
    if path.is_dir():
        problem = "is a folder, not a file to write"
    elif not parent.is_dir():
        problem = f"cannot be written: there is no folder {parent}"
    elif not os.access(parent, os.W_OK):
        problem = f"cannot be written: the folder {parent} is not writable for this user"
    else:
        return
    raise ConfigError(f"{path} {problem}", where=option, remedy="name another file")

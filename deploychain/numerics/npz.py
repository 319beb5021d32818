"""The npz file that a user gives instead of a task: one array per input, axis 0 counts samples."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deploychain.errors import ArtifactError

REMEDY = "write it with numpy.savez: one array per ONNX input, axis 0 counts samples, and optionally `targets`"


def read_npz(path: Path) -> dict[str, npt.NDArray[Any]]:
    """All arrays of the file, by name.

    Raises:
        ArtifactError: it is no npz file, is damaged, holds pickled objects (never loaded), or an array has no samples.
    """
    try:
        stored = np.load(path, allow_pickle=False)
        if not isinstance(stored, np.lib.npyio.NpzFile):
            raise ValueError("a single array")
        with stored:
            arrays = {name: np.asarray(stored[name]) for name in stored.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zipfile.LargeZipFile) as error:
        text = " ".join(str(error).split())[:200]
        if "pickle" in text:  # NumPy takes any unknown bytes for a pickle
            text = "no arrays, or pickled objects, which are never loaded"
        raise ArtifactError(f"not a readable npz file: {text}", where=str(path), remedy=REMEDY) from None
    for name, array in arrays.items():
        if array.ndim == 0 or len(array) == 0:
            raise ArtifactError(f"array {name!r} has no samples", where=str(path), remedy=REMEDY)
    return arrays

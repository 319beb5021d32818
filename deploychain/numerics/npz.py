"""The npz file that a user gives instead of a task: one array per input, axis 0 counts samples."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
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


def misfit(name: str, have: np.dtype[Any], wanted: np.dtype[Any]) -> str:
    """What to do about an array whose type an input does not take; empty where it takes it.

    Floats of any width are taken for each other, integers where no value can be lost. Integers for floats are not:
    mostly they are pixels that were not normalised, and the model would run on them without a word.
    """
    if wanted.kind not in "fiub" or (have.kind == "f" and wanted.kind == "f"):
        return ""
    if wanted.kind == "f":
        return f"preprocess it as in training, then store {name}.astype(numpy.{wanted.name})"
    if have.kind in "iub" and np.can_cast(have, wanted, "safe"):
        return ""
    return f"store {name}.astype(numpy.{wanted.name}), if no value is lost by it"


def check_types(arrays: Mapping[str, npt.NDArray[Any]], wanted: Mapping[str, np.dtype[Any]], where: str) -> None:
    """Compare the arrays of a file with the inputs of a model: by name, else by order where the numbers agree.

    Raises:
        ArtifactError: an array would have to be cast in a way that changes its meaning; it is named.
    """
    if not set(wanted) <= set(arrays) and len(wanted) != len(arrays):
        return  # told by whoever looks the inputs up
    names = wanted if set(wanted) <= set(arrays) else arrays
    for name, (model_input, dtype) in zip(names, wanted.items(), strict=True):
        remedy = misfit(name, arrays[name].dtype, dtype)
        if remedy:
            raise ArtifactError(
                f"array {name!r} holds {arrays[name].dtype.name}, the model's input {model_input!r} takes {dtype.name}",
                where=where,
                remedy=remedy,
            )

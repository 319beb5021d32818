"""Which samples hold NaN or infinity, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = Mapping[str, npt.NDArray[Any]]


def non_finite_samples(arrays: Arrays) -> tuple[int, ...]:
    """Indices on axis 0 of the samples that hold NaN or infinity in any float array, ascending."""
    found: set[int] = set()
    for array in arrays.values():
        if array.dtype.kind == "f" and array.ndim and array.size:
            fine = np.isfinite(array).reshape(len(array), -1).all(axis=1)
            found.update(np.flatnonzero(~fine).tolist())
    return tuple(sorted(found))


def name_samples(samples: Sequence[int], most: int = 5) -> str:
    """``sample 7``, ``samples 7 and 11``, ``samples 1, 2, 3, 4, 5 and 9 more``; counted from 0, as arrays are."""
    if len(samples) == 1:
        return f"sample {samples[0]}"
    if len(samples) > most:
        return f"samples {', '.join(map(str, samples[:most]))} and {len(samples) - most} more"
    return f"samples {', '.join(map(str, samples[:-1]))} and {samples[-1]}"


def non_finite_notes(outputs: Arrays, reference: Arrays | None, inputs: Sequence[int]) -> tuple[str, ...]:
    """What is to be told about outputs that are not finite, or are where the reference's are not.

    Args:
        outputs, reference: by output name, axis 0 counts samples. None: these are the reference's outputs.
        inputs: the samples whose inputs are not finite (`non_finite_samples`).
    """
    bad = non_finite_samples(outputs)
    notes = []
    if bad:
        whose = "the reference itself has " if reference is None else ""
        cause = ", whose inputs hold some too" if set(bad) <= set(inputs) else ""
        notes.append(f"{whose}NaN or infinity in the outputs of {name_samples(bad)}{cause}")
    if reference is not None:
        # torch and onnxruntime both quantise NaN to a number, and a Max or Relu may drop it.
        mended = tuple(i for i in non_finite_samples(reference) if i not in set(bad))
        if mended:
            notes.append(
                f"finite outputs where the reference has NaN or infinity: {name_samples(mended)} (quantisers and some "
                "kernels turn them into numbers); the error is unknown, and the metrics count these samples"
            )
    return tuple(notes)

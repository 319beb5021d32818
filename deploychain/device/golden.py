"""Measure outputs from the device against the answers in the bundle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from deploychain.numerics.errors import compare_outputs
from deploychain.numerics.finite import non_finite_notes
from deploychain.numerics.scores import Scores, read_scores
from deploychain.records import EvalReport

Arrays = Mapping[str, npt.NDArray[Any]]


def score_classes(outputs: Arrays, targets: Any, samples: int, classes: tuple[str, ...] = ()) -> Scores:
    """Top-1 of the first output of shape (samples, classes) against class indices; no metric without either."""
    scores = next((a for a in outputs.values() if a.dtype.kind == "f" and a.ndim == 2 and a.shape[1] > 1), None)
    if targets is None or scores is None:
        return Scores()
    hits = (scores.argmax(axis=1) == targets) & ~np.isnan(scores).any(axis=1)
    return read_scores({"top1": hits}, samples, classes)


def measure(
    stage: str,
    outputs: Arrays,
    reference: Arrays,
    *,
    reference_stage: str,
    how: str,
    targets: npt.NDArray[Any] | None = None,
    classes: tuple[str, ...] = (),
    scores: Scores | None = None,
    seconds: float | None = None,
    sha256: str | None = None,
    notes: tuple[str, ...] = (),
) -> EvalReport:
    """One row of the table.

    Args:
        outputs, reference: by output name, axis 0 counts samples.
        targets: class index per sample; without ``scores`` they give top-1.
        scores: what the task's own metrics said.

    Raises:
        StageError: an output is missing or has another shape than the reference's.
    """
    errors = compare_outputs(outputs, reference, worst=20)
    told = non_finite_notes(outputs, reference, ()) if errors.non_finite or errors.max_abs_error is None else ()
    scored = scores if scores is not None else score_classes(outputs, targets, errors.samples, classes)
    return EvalReport(
        stage=stage,
        ran=True,
        how=how,
        reference=reference_stage,
        samples=errors.samples,
        metrics=scored.metrics,
        per_sample=scored.per_sample,
        per_class=scored.per_class,
        sample_classes=classes if scored.per_sample else (),
        agreement=errors.agreement,
        max_abs_error=errors.max_abs_error,
        mean_abs_error=errors.mean_abs_error,
        relative_error=errors.relative_error,
        cosine=errors.cosine,
        snr_db=errors.snr_db,
        exact=errors.exact,
        non_finite=errors.non_finite,
        worst_samples=errors.worst_samples,
        per_output=errors.per_output,
        seconds=seconds,
        artefact_sha256=sha256,
        notes=(*notes, *told, *errors.notes, *scored.notes),
    )

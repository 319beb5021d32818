"""How far one artefact's outputs are from another's: streaming statistics over batches, in float64.

All sums are taken in float64 over pieces of bounded size, so that a test set of any length costs the memory of one
piece. With out = r + e, where r is the reference's value:

    mean abs error    mean |e|                     relative error   ||e|| / ||r||
    cosine            <out, r> / (||out|| ||r||)    SNR              10 log10(||r||^2 / ||e||^2) dB

Two values that are equal, equally infinite or both NaN have no error. Where only one of the two is finite the error
has no size: the statistics become None (not known), and ``non_finite`` says why.

A reference that decides every sample alike cannot be disagreed with by chance: agreement is then None as well, and
``notes`` says why. Likewise a reference whose output is the same for every sample is told.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from deploychain.errors import StageError

Array = npt.NDArray[Any]

# Elements converted to float64 at a time: 8 MiB per temporary.
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class ErrorSummary:
    """The statistics of one run against a reference. None: not known, or undefined (see the module's text)."""

    samples: int
    exact: bool  # every value of every output bit-equal in value (NaN equals NaN)
    non_finite: int  # NaN and inf among the float outputs
    max_abs_error: float | None
    mean_abs_error: float | None
    relative_error: float | None
    cosine: float | None
    snr_db: float | None  # None when exact (infinite), or when the reference is all zero
    # Share of samples with equal arg-max of the first output that looks like class scores; None also where the
    # reference decides them all alike: its ``per_output`` row then has the key, and without an output it has not.
    agreement: float | None
    agreement_output: str = ""
    worst_samples: tuple[int, ...] = ()  # largest error first; samples without error are never named
    per_output: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Sums:
    """Running sums of one output."""

    count: int = 0
    non_finite: int = 0
    unequal: int = 0
    broken: int = 0  # places where exactly one of the two is finite, or both are non-finite and differ
    max_abs: float = 0.0
    sum_abs: float = 0.0
    error2: float = 0.0
    ref2: float = 0.0
    out2: float = 0.0
    dot: float = 0.0
    rows: int = 0
    agreeing: int = 0
    scores: bool | None = None  # does it look like class scores
    decided: set[int] = field(default_factory=set)  # up to two classes that the reference decides for
    first: Array | None = None  # the reference's first sample
    constant: bool = True  # every sample of the reference is like the first

    def watch(self, ref: Array) -> None:
        """Look whether the reference tells samples apart."""
        if self.first is None:
            self.first = ref[0].copy()
        self.constant = self.constant and ref.size > 0 and bool((ref == self.first).all())

    def add(self, other: _Sums) -> None:
        for name in ("count", "non_finite", "unequal", "broken", "sum_abs", "error2", "ref2", "out2", "dot"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.max_abs = max(self.max_abs, other.max_abs)

    def statistics(self) -> dict[str, float | None]:
        known = self.count > 0 and not self.broken
        error, ref, out = math.sqrt(self.error2), math.sqrt(self.ref2), math.sqrt(self.out2)
        relative = error / ref if ref else (0.0 if error == 0 else None)
        snr = 10 * math.log10(self.ref2 / self.error2) if self.error2 and self.ref2 else None
        cosine = max(-1.0, min(1.0, self.dot / (out * ref))) if out and ref else None
        return {
            "max_abs_error": self.max_abs if known else None,
            "mean_abs_error": self.sum_abs / self.count if known else None,
            "relative_error": relative if known else None,
            "cosine": cosine if known else None,
            "snr_db": snr if known else None,
        }


class ErrorStatistics:
    """Accumulates `update` calls; `summary` may be taken at any time.

    Args:
        worst: how many of the worst samples to remember.
    """

    def __init__(self, worst: int = 32) -> None:
        self._worst = worst
        self._floats: dict[str, _Sums] = {}
        self._others: dict[str, _Sums] = {}
        self._samples = 0
        self._heap: list[tuple[int, float, int, int]] = []  # (broken, max abs, unequal, -index), smallest first

    def update(self, outputs: Mapping[str, Array], reference: Mapping[str, Array]) -> None:
        """Add a batch.

        Args:
            outputs: output name -> array of shape (samples, ...); floats are compared by size of error, everything
                else (integers, booleans) by equality only.
            reference: the same outputs of the reference.

        Raises:
            StageError: an output of the reference is missing, or shapes differ; the output is named.
        """
        samples = -1
        for name, ref in reference.items():
            if name not in outputs:
                raise StageError(f"output {name!r} of the reference is missing; found {', '.join(outputs) or 'none'}")
            out = outputs[name]
            if out.shape != ref.shape or out.ndim == 0:
                raise StageError(f"output {name!r} has shape {list(out.shape)}, the reference {list(ref.shape)}")
            if samples not in (-1, out.shape[0]):
                raise StageError(f"output {name!r} has {out.shape[0]} samples, the others {samples}")
            samples = out.shape[0]
        if samples <= 0:
            return
        width = max(1, max(math.prod(ref.shape[1:]) for ref in reference.values()))
        step = max(1, _PIECE // width)
        for start in range(0, samples, step):
            self._piece({n: outputs[n][start : start + step] for n in reference}, reference, start)
        self._samples += samples

    def _piece(self, outputs: Mapping[str, Array], reference: Mapping[str, Array], start: int) -> None:
        rows = len(next(iter(outputs.values())))
        broken, unequal = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        largest = np.zeros(rows)
        for name, out in outputs.items():
            ref = reference[name][start : start + rows]
            if not (_is_float(out) and _is_float(ref)):
                different = (out != ref).reshape(rows, -1).sum(axis=1)
                sums = self._others.setdefault(name, _Sums())
                sums.count += out.size
                sums.unequal += int(different.sum())
                sums.watch(ref)
                unequal += different
                continue
            sums = self._floats.setdefault(name, _Sums())
            added, bad, size = _compare(out.reshape(rows, -1), ref.reshape(rows, -1))
            sums.add(added)
            sums.watch(ref)
            broken += bad
            np.maximum(largest, size, out=largest)
            looks = out.ndim == 2 and out.shape[1] > 1
            sums.scores = looks if sums.scores is None else sums.scores and looks
            if looks:
                sums.rows += rows
                sums.agreeing += _agreeing(out, ref)
                if len(sums.decided) < 2:
                    sums.decided.update(np.unique(ref.argmax(axis=1)[~np.isnan(ref).any(axis=1)])[:2].tolist())
        for row in np.flatnonzero((broken > 0) | (largest > 0) | (unequal > 0)):
            entry = (int(broken[row]), float(largest[row]), int(unequal[row]), -(self._samples + start + int(row)))
            if len(self._heap) < self._worst:
                heapq.heappush(self._heap, entry)
            elif self._worst:
                heapq.heappushpop(self._heap, entry)

    def summary(self) -> ErrorSummary:
        total = _Sums()
        per_output: dict[str, dict[str, float | None]] = {}
        agreement, decided_on = None, ""
        notes: list[str] = []
        for name, sums in self._floats.items():
            total.add(sums)
            per_output[name] = {**sums.statistics(), "non_finite": sums.non_finite}
            if sums.scores and sums.rows:
                share = None if len(sums.decided) == 1 else sums.agreeing / sums.rows
                per_output[name]["agreement"] = share
                if not decided_on:
                    agreement, decided_on = share, name
                if share is None:
                    notes.append(_one_class(name, sums))
        for name, sums in self._others.items():
            per_output[name] = {"equal": 1 - sums.unequal / sums.count if sums.count else None}
        if self._samples > 1:
            notes += [
                f"output {name!r} of the reference is the same for all {self._samples} samples: to be near it proves "
                "nothing"
                for name, sums in (*self._floats.items(), *self._others.items())
                if sums.constant
            ]
        differing = total.unequal + sum(s.unequal for s in self._others.values())
        return ErrorSummary(
            samples=self._samples,
            exact=self._samples > 0 and differing == 0,
            non_finite=total.non_finite,
            agreement=agreement,
            agreement_output=decided_on,
            worst_samples=tuple(-entry[3] for entry in sorted(self._heap, reverse=True)),
            per_output=per_output,
            notes=tuple(notes),
            **total.statistics(),
        )


def compare_outputs(outputs: Mapping[str, Array], reference: Mapping[str, Array], worst: int = 32) -> ErrorSummary:
    """`ErrorStatistics` over one whole run."""
    statistics = ErrorStatistics(worst)
    statistics.update(outputs, reference)
    return statistics.summary()


def _one_class(name: str, sums: _Sums) -> str:
    others = sums.rows - sums.agreeing
    apart = f"; {others} of {sums.rows} are decided otherwise here" if others else ""
    which = f"class {next(iter(sums.decided))} for every sample"
    return f"agreement is unknown: by {name!r} the reference decides {which}{apart}"


def _is_float(array: Array) -> bool:
    return bool(np.issubdtype(array.dtype, np.floating))


def _compare(out: Array, ref: Array) -> tuple[_Sums, npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Sums of a (rows, values) piece, and per row: broken places, largest error."""
    sums = _Sums(count=out.size)
    if out.size == 0:
        return sums, np.zeros(len(out), np.int64), np.zeros(len(out))
    a, b = out.astype(np.float64), ref.astype(np.float64)
    fine_a, fine_b = np.isfinite(a), np.isfinite(b)
    sums.non_finite = int(a.size - fine_a.sum())
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    sums.unequal = int(a.size - equal.sum())
    both = fine_a & fine_b
    broken = ~both & ~equal
    sums.broken = int(broken.sum())
    if not both.all():  # equal infinities carry no error, and no weight in the norms
        a, b = np.where(both, a, 0.0), np.where(both, b, 0.0)
    error = a - b
    size = np.abs(error)
    sums.max_abs = float(size.max())
    sums.sum_abs = float(size.sum())
    flat_a, flat_b, flat_e = a.ravel(), b.ravel(), error.ravel()
    sums.error2, sums.ref2 = float(flat_e @ flat_e), float(flat_b @ flat_b)
    sums.out2, sums.dot = float(flat_a @ flat_a), float(flat_a @ flat_b)
    return sums, broken.sum(axis=1), size.max(axis=1)


def _agreeing(out: Array, ref: Array) -> int:
    """Rows with the same decision. A row that holds a NaN has decided nothing."""
    decided = ~(np.isnan(out).any(axis=1) | np.isnan(ref).any(axis=1))
    return int((decided & (out.argmax(axis=1) == ref.argmax(axis=1))).sum())

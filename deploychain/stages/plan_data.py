"""Calibration data of a plan: from the task, or from the arrays that the user gave."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deploychain.errors import ArtifactError
from deploychain.job import Job
from deploychain.numerics.drop import Arrays, Metric, top1
from deploychain.numerics.npz import REMEDY, read_npz
from deploychain.settings import PlanSettings
from deploychain.task import Task, lower_is_better, score


@dataclass(frozen=True)
class Calibration:
    """Input name -> array, and the metric over the outputs of exactly these samples, where there is one."""

    inputs: dict[str, npt.NDArray[Any]]
    metric: Metric | None = None
    metric_name: str = ""
    file: str = ""  # empty: a task


def from_npz(path: Path, limit: int | None = None) -> Calibration:
    """The arrays of an npz file; class indices under ``targets`` give top-1 as the metric.

    Raises:
        ArtifactError: no npz, it holds pickled objects, which are never loaded, or targets and inputs differ in number.
    """
    arrays = {name: array[:limit] for name, array in read_npz(path).items()}
    targets = arrays.pop("targets", None)
    for name, array in arrays.items():
        if targets is not None and len(array) != len(targets):
            raise ArtifactError(
                f"'targets' has {len(targets)} rows, {name!r} has {len(array)}", where=str(path), remedy=REMEDY
            )
    metric = top1(targets) if targets is not None else None
    return Calibration(arrays, metric, "top1" if metric is not None else "", str(path))


def from_job(job: Job[PlanSettings]) -> Calibration:
    """Calibration samples of the chain: its data file, else its task's calibration data in a seeded order."""
    limit = job.settings.calibration_samples
    if job.has("data"):
        from deploychain.backends.onnx_inputs import input_types

        found = from_npz(job.input("data"), limit)
        missing = [name for name in input_types(job.input("onnx-fp32")) if name not in found.inputs]
        if missing:
            have = ", ".join(found.inputs) or "nothing"
            raise ArtifactError(
                f"the model's input {missing[0]!r} is not in the data, which has {have}",
                where=str(job.inputs["data"].path),
                remedy=REMEDY,
            )
        return found
    return from_task(job.need_task().load(), limit, job.seed)


def from_task(task: Task, limit: int, seed: int) -> Calibration:
    """The first ``limit`` samples of a task's calibration data in a seeded order, and its main metric over them."""
    from deploychain.backends import torch_data
    from deploychain.backends.torch_eval import metric_means

    loader = torch_data.make_loader(task, "calibration", min(limit, 64), seed, shuffle=True)
    parts: dict[str, list[npt.NDArray[Any]]] = {}
    targets: list[Any] = []
    names: tuple[str, ...] = ()
    taken = 0
    for batch in loader:
        values, target = torch_data.split_batch(batch)
        names = names or torch_data.input_names(task.model(), values)
        for key, value in torch_data.inputs_to_dict(values, names).items():
            parts.setdefault(key, []).append(np.asarray(value))
        targets.append(target)
        taken += torch_data.batch_length(values)
        if taken >= limit:
            break
    inputs = {key: np.concatenate(arrays) for key, arrays in parts.items()}
    joined = torch_data.join_targets(targets)
    lower = lower_is_better(task)

    def metric(outputs: Arrays) -> float:
        means = metric_means(score(task, outputs, joined))
        first = next(iter(means))
        return -means[first] if first in lower else means[first]

    return Calibration(inputs, metric, "the task's main metric")

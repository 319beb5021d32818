"""The task's metrics of a torch model, in eval mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from deploychain.backends.torch_data import call_model, join_targets, move, outputs_to_dict, split_batch
from deploychain.errors import StageError
from deploychain.task import Task


@torch.no_grad()
def evaluate(model: nn.Module, task: Task, loader: DataLoader[Any], device: torch.device) -> dict[str, float]:
    """Run the model over a loader in its own precision and return the mean of each metric.

    Raises:
        StageError: `metrics()` returns no mapping of numbers.
    """
    training = model.training
    model.eval()
    parts: dict[str, list[np.ndarray[Any, Any]]] = {}
    targets: list[Any] = []
    try:
        for batch in loader:
            inputs, target = split_batch(batch)
            for name, value in outputs_to_dict(call_model(model, move(inputs, device))).items():
                parts.setdefault(name, []).append(value.float().cpu().numpy())
            targets.append(target)
    finally:
        model.train(training)
    outputs = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    return metric_means(task.metrics(outputs, join_targets(targets)))


def metric_means(metrics: Any) -> dict[str, float]:
    """name -> number, where the task gave a number or one score per sample.

    Raises:
        StageError: the value is something else.
    """
    if not isinstance(metrics, Mapping) or not metrics:
        raise StageError(
            f"metrics() returned {type(metrics).__name__}, expected a mapping such as {{'top1': scores}}",
            where="task",
            remedy="return name -> number, or name -> one score per sample",
        )
    means = {}
    for name, value in metrics.items():
        try:
            means[str(name)] = float(np.mean(np.asarray(value, dtype=np.float64)))
        except (TypeError, ValueError):
            raise StageError(
                f"metric {name!r} is {type(value).__name__}, not a number or one score per sample", where="task"
            ) from None
    return means

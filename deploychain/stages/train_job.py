"""A training job as JSON, for the processes that train together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from deploychain.console import Progress, silent
from deploychain.job import Job
from deploychain.settings import TrainSettings
from deploychain.task import TaskRef


def dump_job(job: Job[TrainSettings]) -> dict[str, Any]:
    """Everything that a training needs to know, as JSON types."""
    task = job.need_task()
    return {
        "settings": job.settings.model_dump(mode="json"),
        "task": {
            "source": task.source,
            "file": str(task.file) if task.file is not None else None,
            "module": task.module,
            "attribute": task.attribute,
            "args": dict(task.args),
        },
        "seed": job.seed,
        "out": str(job.out),
        "scratch": str(job.scratch),
    }


def restore_job(
    raw: dict[str, Any],
    progress: Callable[[str], AbstractContextManager[Progress]] = silent,
    note: Callable[[str], None] = lambda text: None,
) -> Job[TrainSettings]:
    """The job of `dump_job`; silent unless told otherwise."""
    task = dict(raw["task"])
    task["file"] = Path(task["file"]) if task["file"] is not None else None
    return Job(
        stage="train",
        settings=TrainSettings(**raw["settings"]),
        task=TaskRef(**task),
        seed=raw["seed"],
        inputs={},
        out=Path(raw["out"]),
        scratch=Path(raw["scratch"]),
        progress=progress,
        note=note,
    )

"""Make a `Job` by hand, and run a stage with it, as the chain would."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deploychain.artifact import Artifact
from deploychain.console import silent
from deploychain.job import Job, Stage
from deploychain.settings import Settings
from deploychain.task import TaskRef


def run_stage(
    stage: Stage,
    folder: Path,
    settings: Settings,
    inputs: Mapping[str, Path],
    task: TaskRef | None = None,
) -> tuple[dict[str, Path], list[str], Mapping[str, Any]]:
    """Run a stage; returns kind -> file, the notes, and the summary."""
    out, scratch = folder / f"{stage.name}-out", folder / f"{stage.name}-scratch"
    for place in (out, scratch):
        place.mkdir(parents=True, exist_ok=True)
    notes: list[str] = []
    job = Job(
        stage=stage.name,
        settings=settings,
        task=task,
        seed=0,
        inputs={kind: Artifact.of(kind, path) for kind, path in inputs.items()},
        out=out,
        scratch=scratch,
        progress=silent,
        note=notes.append,
        pipeline="made-by-hand",
    )
    result = stage.run(job)
    assert set(result.artifacts) <= set(stage.produces)
    json.dumps(result.summary, allow_nan=False)
    return {kind: out / name for kind, name in result.artifacts.items()}, notes, result.summary


def read_rows(files: Mapping[str, Path]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """stage -> row of an eval-reports file, and the whole file."""
    content = json.loads(files["eval-reports"].read_text())
    return {row["stage"]: row for row in content["evals"]}, content

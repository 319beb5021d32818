"""What a stage is, and what it is given. Nothing else reaches a stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from deploychain.artifact import Artifact
from deploychain.console import Progress
from deploychain.errors import StageError
from deploychain.settings import Settings
from deploychain.task import TaskRef

S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class Job(Generic[S]):
    """One run of one stage."""

    stage: str
    settings: S
    task: TaskRef | None
    seed: int
    inputs: Mapping[str, Artifact]  # by kind; kinds that the chain lacks are absent
    out: Path  # the stage writes its artefacts here; the folder is published whole or not at all
    scratch: Path  # survives an interruption of this very job (same key): resumable state
    progress: Callable[[str], AbstractContextManager[Progress]]
    note: Callable[[str], None]  # a line for the user, kept in the record
    pipeline: str = ""  # its name

    def input(self, kind: str) -> Path:
        """The verified path of an input artefact.

        Raises:
            ArtifactError: its bytes changed since it was published.
            StageError: the chain has no such input.
        """
        found = self.inputs.get(kind)
        if found is None:
            raise StageError(f"the chain has no {kind} artefact for this stage", where=self.stage)
        return found.open()

    def has(self, kind: str) -> bool:
        return kind in self.inputs

    def need_task(self) -> TaskRef:
        if self.task is None:
            raise StageError("this stage needs a task", where=self.stage, remedy="add `task: task.py:ClassName`")
        return self.task


@dataclass(frozen=True)
class StageResult:
    """What a stage made: kind -> file name inside ``job.out``, and a small JSON summary for the run table."""

    artifacts: Mapping[str, str]
    summary: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """Declaration of a stage. Its key is made of version, settings, inputs, task code and ``facts``, nothing else."""

    name: str
    version: int  # raised when the meaning of the outputs changes
    requires: tuple[str, ...]  # kinds without which it cannot run
    accepts: tuple[str, ...]  # kinds that it reads when the chain has them
    produces: tuple[str, ...]
    facts: tuple[str, ...]  # names of environment facts (see `environment.fact`) that its outputs depend on
    uses_task: bool
    run: Callable[[Job[Any]], StageResult]
    needs: tuple[str, ...] = ()  # importable packages; checked before anything runs

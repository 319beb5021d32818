"""The chain: check what the pipeline asks, plan what is stale, run it.

A stage's key is a hash of its causes: its settings, version, task code, data, the sha256 of its inputs and the
environment facts that it declares. Equal causes, equal key: the stage is cached.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploychain.artifact import Artifact
from deploychain.config import Pipeline
from deploychain.console import Progress, silent
from deploychain.environment import fact
from deploychain.errors import ArtifactError, CapabilityError, ConfigError, StageError
from deploychain.failure import translate
from deploychain.given import start_files, watched_files
from deploychain.job import Job, Stage, StageResult
from deploychain.outcome import NOT_SELECTED, RunResult, StageRow, collect
from deploychain.records import to_json
from deploychain.settings import STAGE_ORDER, Settings
from deploychain.stages import registry
from deploychain.workspace import Workspace, write_json

INSTALL = 'pip install -c constraints.txt "deploychain[chain,rtx]"'


@dataclass(frozen=True)
class Selection:
    """Which stages may run. The others must be cached."""

    only: str | None = None
    first: str | None = None
    last: str | None = None
    force: tuple[str, ...] = ()

    def names(self, chain: Sequence[str]) -> tuple[str, ...]:
        """The selected stage names.

        Raises:
            ConfigError: a name is no stage of this chain.
        """
        for option, name in (("--only", self.only), ("--from", self.first), ("--until", self.last)):
            _known(option, name, chain)
        for name in self.force:
            _known("--force", name, chain)
        chosen = self._chosen(chain)
        for name in self.force:
            if name not in chosen:
                raise ConfigError(
                    f"--force {name}: it is not among the stages that may run ({', '.join(chosen)})",
                    where="command line",
                    remedy="select it too, or leave --force out",
                )
        return chosen

    def _chosen(self, chain: Sequence[str]) -> tuple[str, ...]:
        if self.only is not None:
            if self.first is not None or self.last is not None:
                raise ConfigError("--only cannot be combined with --from or --until", where="command line")
            return (self.only,)
        start = chain.index(self.first) if self.first else 0
        end = chain.index(self.last) + 1 if self.last else len(chain)
        if start >= end:
            raise ConfigError(f"--from {self.first} comes after --until {self.last}", where="command line")
        return tuple(chain[start:end])


def default_run_dir(pipeline: Pipeline) -> Path:
    """``runs/NAME`` beside the pipeline file."""
    return pipeline.base / "runs" / pipeline.settings.name


def check(pipeline: Pipeline) -> tuple[tuple[Stage, Settings], ...]:
    """The chain's stages with their settings, in order, after checking that each one can get its inputs.

    Raises:
        ConfigError: no stages, a stage lacks an input or the task, or a start file does not exist.
    """
    chain = tuple((registry()[name], settings) for name, settings in pipeline.settings.stages.named())
    if pipeline.settings.gate is not None:
        from deploychain.gate.limits import parse_limits

        parse_limits(pipeline.settings.gate, pipeline.where("gate"))  # wrong limits are told before the training
    if not chain:
        raise ConfigError(
            "no stage is named", where=pipeline.where("stages"), remedy=f"name some of {', '.join(STAGE_ORDER)}"
        )
    start = start_files(pipeline)
    have = set(start)
    for stage, _ in chain:
        key = ("stages", stage.name)
        if stage.name == "train" and start.keys() - {"data"}:
            raise ConfigError(
                "the chain starts from a file, so train has nothing to do",
                where=pipeline.where(*key),
                remedy="remove train or start",
            )
        if stage.uses_task and pipeline.task is None:
            raise ConfigError(
                f"stage {stage.name} needs a task", where=pipeline.where(*key), remedy="add `task: task.py:ClassName`"
            )
        missing = [kind for kind in stage.requires if kind not in have]
        if missing:
            makers = [s.name for s in registry().values() if missing[0] in s.produces]
            raise ConfigError(
                f"stage {stage.name} needs {missing[0]}, which nothing before it makes",
                where=pipeline.where(*key),
                remedy=f"add the stage {makers[0]}, or a file under `start`" if makers else "name a file under `start`",
            )
        have.update(stage.produces)
    hungry = next((s.name for s, _ in chain if s.name in ("plan", "evaluate")), None)
    if hungry is not None and pipeline.task is None and "data" not in start:
        raise ConfigError(
            f"{hungry} needs data: there is neither a task nor `data`",
            where=pipeline.where("stages", hungry),
            remedy="add `data: test.npz` with one array per ONNX input",
        )
    return chain


def run(
    pipeline: Pipeline,
    *,
    run_dir: Path | None = None,
    selection: Selection = Selection(),
    progress: Callable[[str], AbstractContextManager[Progress]] = silent,
    note: Callable[[str], None] = lambda text: None,
) -> RunResult:
    """Bring the selected stages up to date.

    Raises:
        ConfigError: the pipeline or the selection is wrong; nothing has run.
        CapabilityError: a package, disk space or the run folder is missing.
        StageError: a stage failed; the stages before it are published and kept.
    """
    chain = check(pipeline)
    selected = selection.names([s.name for s, _ in chain])
    world, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    if world > 1 and rank > 0:
        return _follow(run_dir or default_run_dir(pipeline))
    workspace = Workspace(run_dir or default_run_dir(pipeline))
    session = _Session(pipeline, workspace, selection.force, progress, note, world)
    with workspace.locked(), _told(workspace.root), session.announcing():
        _check_packages(dry_run(pipeline, run_dir=run_dir, selection=selection).stages)
        rows: list[StageRow] = []
        for stage, settings in chain:
            try:
                rows.append(session.step(stage, settings, stage.name in selected, _feeds(stage, chain, selected)))
            except BaseException as error:
                what = "was interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
                rows.append(StageRow(stage.name, "failed", str(error) or what))
                rows.extend(StageRow(s.name, "not-run", f"{stage.name} {what}") for s, _ in chain[len(rows) :])
                with suppress(OSError):  # on a full disk the stage's own error is the one to tell
                    write_json(
                        workspace.root / "run.json", RunResult(workspace.root, rows, pipeline=pipeline.file).to_dict()
                    )
                raise
        result = collect(workspace, rows, pipeline.file)
        write_json(workspace.root / "run.json", result.to_dict())
    return result


def dry_run(pipeline: Pipeline, *, run_dir: Path | None = None, selection: Selection = Selection()) -> RunResult:
    """For every stage whether it is cached or stale, and why. Writes nothing."""
    chain = check(pipeline)
    selected = selection.names([s.name for s, _ in chain])
    workspace = Workspace(run_dir or default_run_dir(pipeline))
    session = _Session(pipeline, workspace, selection.force, silent, lambda text: None, 1)
    rows = [session.preview(stage, settings, stage.name in selected) for stage, settings in chain]
    return RunResult(workspace.root, rows, pipeline=pipeline.file)


class _Session:
    """The state of one run: which artefacts exist so far."""

    def __init__(
        self,
        pipeline: Pipeline,
        workspace: Workspace,
        force: Sequence[str],
        progress: Callable[[str], AbstractContextManager[Progress]],
        note: Callable[[str], None],
        world: int,
    ) -> None:
        self.pipeline = pipeline
        self.workspace = workspace
        self.force = force
        self.progress = progress
        self.note = note
        self.world = world
        self.available: dict[str, Artifact] = {}
        self.stale_kinds: dict[str, str] = {}  # kind -> stage that will remake it (previews)
        for kind, path in start_files(pipeline).items():
            try:
                self.available[kind] = Artifact(
                    kind, path, workspace.hash_of(path), path.stat().st_size, path.stat().st_mtime_ns
                )
            except OSError as error:
                raise ArtifactError(f"cannot read the {kind} file: {error.strerror}", where=str(path)) from None
        self._beside = {kind: self._external(kind, a.path) for kind, a in self.available.items() if "onnx" in kind}
        self._task_print = pipeline.task.fingerprint() if pipeline.task else ""
        base = pipeline.base.resolve()  # relative names: a project may move
        self._watch = {os.path.relpath(p, base): workspace.hash_of(p) for p in watched_files(pipeline)}
        self._announced = False

    def _external(self, kind: str, path: Path) -> dict[str, str]:
        """The weights that an ONNX file keeps in other files are as much a cause as the file itself."""
        from deploychain.engine.onnxfile import external_files

        try:
            files = {name: path.parent / name for name in external_files(path)}
        except ArtifactError:  # the stage that reads it says what is wrong
            return {}
        return {f"input {kind} {n}": self.workspace.hash_of(p) for n, p in files.items() if p.is_file()}

    def causes(self, stage: Stage, settings: Settings) -> dict[str, str]:
        made = {"version": str(stage.version), "seed": str(self.pipeline.settings.seed)}
        made |= {f"setting {k}": json.dumps(v, sort_keys=True) for k, v in settings.model_dump(mode="json").items()}
        for kind in (*stage.requires, *stage.accepts):
            if kind in self.available:
                made[f"input {kind}"] = self.available[kind].sha256
                made |= self._beside.get(kind, {})
        made |= {f"fact {name}": fact(name) for name in stage.facts}
        if stage.uses_task or "data" in stage.accepts:
            made["task code"] = self._task_print
            made |= {f"data file {name}": digest for name, digest in self._watch.items()}
        return made

    def step(self, stage: Stage, settings: Settings, selected: bool, feeds: bool) -> StageRow:
        """Bring one stage up to date, or say why not.

        Args:
            selected: it may run.
            feeds: a selected stage behind it reads what it makes, so it must not be stale.
        """
        causes = self.causes(stage, settings)
        key = _key(stage.name, causes)
        found = self.workspace.find(stage.name, key)
        if found is not None and not (selected and stage.name in self.force):
            self.workspace.point(stage.name, key)
            self.available.update(found.by_kind())
            return StageRow(stage.name, "cached", "nothing changed", found.seconds, found)
        if not selected:
            if feeds:
                raise StageError(
                    f"not selected, and stale: {self._why(stage.name, causes)}",
                    where=stage.name,
                    remedy="run without --only/--from, or select it too",
                )
            return StageRow(stage.name, "not-run", NOT_SELECTED)
        return self._execute(stage, settings, key, causes)

    def preview(self, stage: Stage, settings: Settings, selected: bool) -> StageRow:
        waits = [self.stale_kinds[k] for k in (*stage.requires, *stage.accepts) if k in self.stale_kinds]
        causes = self.causes(stage, settings)
        found = None if waits else self.workspace.find(stage.name, _key(stage.name, causes))
        if found is not None and not (selected and stage.name in self.force):
            self.available.update(found.by_kind())
            return StageRow(stage.name, "cached", "nothing changed", found.seconds, found)
        self.stale_kinds.update(dict.fromkeys(stage.produces, stage.name))
        if not selected:
            return StageRow(stage.name, "not-run", NOT_SELECTED)
        if stage.name in self.force:
            return StageRow(stage.name, "stale", "--force")
        if waits:
            return StageRow(stage.name, "waiting", f"its inputs come from {waits[0]}, which runs first")
        return StageRow(stage.name, "stale", self._why(stage.name, causes))

    def _why(self, name: str, causes: Mapping[str, str]) -> str:
        before = self.workspace.latest(name)
        if before is None:
            return "never run"
        changed = []
        for cause in [*causes, *(c for c in before.causes if c not in causes)]:
            old, new = before.causes.get(cause), causes.get(cause)
            if old == new:
                continue
            if cause.startswith(("setting", "fact", "version", "seed")):
                changed.append(f"{cause} was {old}, now {new}")
            else:
                changed.append(f"{cause} {'is new' if old is None else 'is gone' if new is None else 'changed'}")
        return "; ".join(changed) or "its artefacts are missing or were changed by hand"

    def _execute(self, stage: Stage, settings: Settings, key: str, causes: Mapping[str, str]) -> StageRow:
        why = "--force" if stage.name in self.force else self._why(stage.name, causes)
        notes: list[str] = []

        def keep(text: str) -> None:
            notes.append(text)
            self.note(f"{stage.name}: {text}")

        work = self.workspace.work_dir(stage.name)
        inputs = {k: self.available[k] for k in (*stage.requires, *stage.accepts) if k in self.available}
        job: Job[Any] = Job(
            stage=stage.name,
            settings=settings,
            task=self.pipeline.task,
            seed=self.pipeline.settings.seed,
            inputs=inputs,
            out=work,
            scratch=self.workspace.scratch_dir(stage.name, key),
            progress=self.progress,
            note=keep,
            pipeline=self.pipeline.settings.name,
        )
        self.note(f"{stage.name}: running ({why})")
        began = time.monotonic()
        try:
            if stage.name == "train":
                self._announce(job)
            result = stage.run(job)
            _check_result(stage, result)
            record = self.workspace.publish(
                work,
                stage=stage.name,
                key=key,
                causes=causes,
                artifacts=result.artifacts,
                summary=to_json(result.summary),
                notes=tuple(notes),
                seconds=round(time.monotonic() - began, 3),
            )
        except (Exception, SystemExit) as error:  # the task's code may call sys.exit()
            file = self.pipeline.task.file if self.pipeline.task else None
            raise translate(error, stage.name, file, self.workspace.root) from error
        finally:
            self.workspace.discard(work)
        self.available.update(record.by_kind())
        return StageRow(stage.name, "ran", why, record.seconds, record)

    def _announce(self, job: Job[Any] | None) -> None:
        if self.world > 1 and not self._announced:
            from deploychain.stages import train

            self._announced = True
            train.announce(job)

    @contextmanager
    def announcing(self) -> Iterator[None]:
        """Under torchrun the other processes wait to hear whether training runs: never leave them waiting."""
        try:
            yield
        finally:
            self._announce(None)


@contextmanager
def _told(root: Path) -> Iterator[None]:
    """The chain's own writing fails like a stage's: on a full disk, in a folder that became read-only."""
    try:
        yield
    except OSError as error:
        raise translate(error, "the chain", None, root) from error


def _check_packages(rows: Sequence[StageRow]) -> None:
    """Before anything runs: are the packages of the stages that will run importable?"""
    for row in rows:
        if row.status in ("stale", "waiting"):
            missing = [p for p in registry()[row.name].needs if importlib.util.find_spec(p) is None]
            if missing:
                raise CapabilityError(
                    f"stage {row.name} needs {', '.join(missing)}", where="this Python environment", remedy=INSTALL
                )


def _follow(run_dir: Path) -> RunResult:
    from deploychain.stages import train

    train.follow()
    return RunResult(run_dir, [])


def _feeds(stage: Stage, chain: Sequence[tuple[Stage, Settings]], selected: Sequence[str]) -> bool:
    """Does a selected stage read, directly or through others, what this one makes?"""
    kinds = set(stage.produces)
    for later, _ in chain[[s.name for s, _ in chain].index(stage.name) + 1 :]:
        if kinds & {*later.requires, *later.accepts}:
            if later.name in selected:
                return True
            kinds.update(later.produces)
    return False


def _key(name: str, causes: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps([name, sorted(causes.items())]).encode()).hexdigest()[:16]


def _known(option: str, name: str | None, chain: Sequence[str]) -> None:
    if name is not None and name not in chain:
        from deploychain.config import nearest

        what = "is not a stage of this chain" if name in STAGE_ORDER else "unknown stage"
        raise ConfigError(f"{option} {name}: {what}", where="command line", remedy=nearest(name, list(chain)))


def _check_result(stage: Stage, result: StageResult) -> None:
    foreign = [kind for kind in result.artifacts if kind not in stage.produces]
    if foreign:
        raise StageError(f"made {foreign[0]}, which it does not declare", where=stage.name)

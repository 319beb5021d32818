"""From paths to a verdict: find the comparison, the limits and the baseline of a run, and judge.

What cannot be read is a verdict too (incomplete, not comparable), so that every output format can say so.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deploychain.config import Key
from deploychain.errors import ArtifactError, ConfigError
from deploychain.gate.acceptance import accept, git_author
from deploychain.gate.baseline import Baseline, BaselineError, load
from deploychain.gate.judgement import judge
from deploychain.gate.limits import GateLimits, limit_lines, load_limits
from deploychain.records import Comparison, load_comparison
from deploychain.verdicts import Check, Entry, GateResult, Status, Verdict

COMPARISON_FILE = "comparison.json"
_FACTS = ("tensorrt", "device", "flags", "pipeline")


def comparison_path(run: Path) -> Path:
    """The comparison of a run folder, or the path itself where it names a file."""
    return run / COMPARISON_FILE if _is(run.is_dir) else run


def _is(question: Callable[[], bool]) -> bool:
    """The answer, or no where the file system refuses it: what cannot be looked at is missed when it is read."""
    try:
        return question()
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class LimitsSource:
    """Limits, and the file that they came from (None: the built-in defaults)."""

    limits: GateLimits
    file: Path | None

    @property
    def name(self) -> str:
        """The file as the reports name it: relative to the working folder where it lies in there."""
        if self.file is None:
            return ""
        path = self.file.resolve()
        return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else str(self.file)

    @property
    def lines(self) -> dict[Key, int]:
        return limit_lines(self.file) if self.file is not None else {}

    def baseline_path(self, given: Path | None) -> Path:
        """The baseline: as given, else as the limits name it, relative to their file."""
        if given is not None:
            return given
        folder = self.file.parent if self.file is not None else Path()
        return folder / self.limits.baseline


def find_limits(run: Path, given: Path | None = None) -> LimitsSource:
    """The limits: the given file, else gate.yaml or pipeline.yaml here, in the run, beside its pipeline; or defaults.

    The working folder comes first: there lies what is under review.

    Raises:
        ConfigError: a file that was found is wrong, or the given one is missing.
    """
    if given is not None:
        return LimitsSource(load_limits(given), given)
    folder = run if _is(run.is_dir) else run.parent
    pipeline = _pipeline_of(folder)
    candidates = [Path("gate.yaml"), Path("pipeline.yaml"), folder / "gate.yaml", folder / "pipeline.yaml"]
    if pipeline is not None:
        candidates += [pipeline.parent / "gate.yaml", pipeline]
    for candidate in candidates:
        if _is(candidate.is_file):
            return LimitsSource(load_limits(candidate), candidate)
    return LimitsSource(GateLimits(), None)


def _pipeline_of(run: Path) -> Path | None:
    """The pipeline file that a run folder says it was made from."""
    try:
        named = json.loads((run / "run.json").read_text(encoding="utf-8"))["pipeline"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Path(named) if isinstance(named, str) else None


def expecting(limits: GateLimits, facts: tuple[str, ...]) -> GateLimits:
    """The limits with more facts that may change.

    Raises:
        ConfigError: a fact that may never change between two measurements, such as the data.
    """
    for fact in facts:
        if fact not in _FACTS:
            raise ConfigError(
                f"{fact!r} cannot be expected to change", where="--expect-change", remedy=f"one of {', '.join(_FACTS)}"
            )
    merged: tuple[Any, ...] = tuple(dict.fromkeys((*limits.expect_change, *facts)))
    return limits.model_copy(update={"expect_change": merged})


@dataclass(frozen=True, slots=True)
class Session:
    """A judged run with all that the outputs need."""

    result: GateResult
    comparison: Comparison | None
    source: LimitsSource


def judge_run(
    run: Path,
    *,
    baseline: Path | None = None,
    without_baseline: bool = False,
    limits: Path | None = None,
    expect_change: tuple[str, ...] = (),
    on_inconclusive: str | None = None,
    today: datetime.date | None = None,
) -> Session:
    """Judge a run folder or a comparison.json.

    Raises:
        ConfigError: limits or options that are wrong.
    """
    source = find_limits(run, limits)
    source = replace(source, limits=expecting(source.limits, expect_change))
    if on_inconclusive is not None:
        if on_inconclusive not in ("fail", "warn"):
            raise ConfigError(f"{on_inconclusive!r} is neither fail nor warn", where="--on-inconclusive")
        source = replace(source, limits=source.limits.model_copy(update={"on_inconclusive": on_inconclusive}))
    path = source.baseline_path(baseline)
    try:
        comparison = load_comparison(comparison_path(run))
    except ArtifactError as error:
        check = Check("", "missing", Status.INCOMPLETE, str(error))
        result = GateResult(Verdict.INCOMPLETE, (check,), baseline_path=str(path))
        return Session(result, None, source)
    old: Baseline | None = None
    problem = ""
    if not without_baseline:
        try:
            old = load(path)
        except BaselineError as error:
            problem = str(error)
    result = judge(
        comparison,
        source.limits,
        old,
        baseline_problem=problem,
        baseline_path="" if without_baseline else str(path),
        run=str(run),
        pipeline=source.name if source.name.endswith("pipeline.yaml") else "",
        today=today or datetime.datetime.now(datetime.timezone.utc).date(),
    )
    if source.file is None:
        note = Check("", "limits", Status.NOTE, "no gate.yaml or pipeline.yaml was found: the default limits judged")
        result = replace(result, checks=(*result.checks, note))
    return Session(result, comparison, source)


def judge_for_report(run: Path, *, baseline: Path | None = None, limits: Path | None = None) -> GateResult:
    """The judgement that a report shows: against the baseline where there is one, without where none was made yet.

    Raises:
        ConfigError: limits that are wrong.
    """
    exists = _is(find_limits(run, limits).baseline_path(baseline).is_file)
    return judge_run(run, baseline=baseline, limits=limits, without_baseline=baseline is None and not exists).result


def accept_run(
    run: Path, *, reason: str, baseline: Path | None = None, limits: Path | None = None, author: str | None = None
) -> tuple[Entry, Path]:
    """Make a run the baseline.

    Raises:
        ArtifactError: the run cannot be a baseline, or the present one is damaged.
        ConfigError: limits that are wrong.
    """
    path = find_limits(run, limits).baseline_path(baseline)
    comparison = load_comparison(comparison_path(run))
    _, entry = accept(comparison, path, reason=reason, author=author or git_author())
    return entry, path


def read_baseline(baseline: Path | None, limits: Path | None = None) -> Baseline:
    """The verified baseline.

    Raises:
        BaselineError: missing, damaged or hand-edited.
    """
    return load(find_limits(Path(), limits).baseline_path(baseline))

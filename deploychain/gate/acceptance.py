"""`gate accept`: make a run the baseline, and keep who decided so, when, why, and which values changed."""

from __future__ import annotations

import fcntl
import getpass
import math
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path

from deploychain.errors import ArtifactError, CapabilityError, ConfigError
from deploychain.gate.baseline import Baseline, BaselineError, from_comparison, key_values, load, save
from deploychain.records import Comparison
from deploychain.verdicts import Change, Entry


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder while its baseline is read and replaced: of two acceptances at once none is lost.

    The lock is on the folder, so that no lock file is left in a repository.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise CapabilityError(f"cannot use the folder of the baseline: {error.strerror}", where=str(folder)) from None
    try:
        with suppress(OSError):  # a network file system may have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def git_author() -> str:
    """Who accepts: git's user, else the login name."""
    parts = []
    for key in ("user.name", "user.email"):
        try:
            done = subprocess.run(
                ["git", "config", "--get", key], capture_output=True, text=True, check=False, timeout=10
            )
            parts.append(done.stdout.strip())
        except (OSError, subprocess.TimeoutExpired):
            parts.append("")
    if parts[0]:
        return f"{parts[0]} <{parts[1]}>" if parts[1] else parts[0]
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def accept(
    comparison: Comparison, path: Path, *, reason: str, author: str, now: datetime | None = None
) -> tuple[Baseline, Entry]:
    """Make the run the baseline, and record who decided so, when, why, and which values changed.

    Raises:
        BaselineError: the present baseline is damaged (accepting over it would hide that).
        ArtifactError: the run holds nothing that could be a baseline, or a number that is not finite.
        ConfigError: no reason.
        CapabilityError: the file cannot be written.
    """
    if not reason.strip():
        raise ConfigError("an acceptance needs a reason", where="--reason", remedy="say why the new values are right")
    _check_acceptable(comparison)
    with _alone(path.parent):
        return _replace(comparison, path, reason.strip(), author, now or datetime.now(timezone.utc))


def _check_acceptable(comparison: Comparison) -> None:
    measured = [r for r in comparison.evals if r.ran]
    if not measured:
        raise ArtifactError("no stage of the run was measured", remedy="run the chain to its evaluate stage first")
    for report in measured:
        bad = [name for name, value in report.metrics.items() if value is None or not math.isfinite(value)]
        if bad or report.non_finite:
            what = f"{', '.join(bad)} is not a finite number" if bad else f"{report.non_finite} outputs are not finite"
            raise ArtifactError(f"{what}: that cannot be a baseline", where=report.stage)
    for names in ([r.stage for r in measured], [e.name for e in comparison.engines]):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ArtifactError("it was measured twice, and nothing says which counts", where=", ".join(twice))
    for latency in comparison.latency:
        numbers = (latency.p50_ms, latency.p99_ms, *latency.repeats, *latency.parts)
        if not all(v is None or (math.isfinite(v) and v > 0) for v in numbers):
            raise ArtifactError("a latency holds a number that is no time", where=latency.stage)
    twice = sorted({x.stage for x in comparison.latency if _times(comparison, x.stage, x.device) > 1})
    if twice:
        raise ArtifactError("its latency was measured twice on one device", where=", ".join(twice))
    if comparison.provenance.data_sha256 is None:
        raise ArtifactError(
            "the run does not say which test data it was measured on: nothing could ever be compared with it",
            where="provenance.data_sha256",
        )


def _times(comparison: Comparison, stage: str, device: str) -> int:
    return sum((x.stage, x.device) == (stage, device) for x in comparison.latency)


def _replace(comparison: Comparison, path: Path, reason: str, author: str, now: datetime) -> tuple[Baseline, Entry]:
    try:
        old = load(path) if path.exists() else None
    except OSError as error:
        raise BaselineError(f"cannot read the baseline: {error.strerror}", where=str(path)) from None
    values = key_values(comparison)
    before = dict(old.history[-1].values) if old is not None and old.history else {}
    changes = tuple(
        Change(name, before.get(name), values.get(name))
        for name in sorted({*before, *values})
        if before.get(name) != values.get(name)
    )
    entry = Entry(
        date=now.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        author=author,
        reason=reason,
        values=values,
        changes=changes,
        tensorrt=comparison.provenance.tensorrt,
        device=comparison.provenance.device,
    )
    history = (*(old.history if old is not None else ()), entry)
    made = from_comparison(comparison, history)
    save(made, path)
    return made, entry

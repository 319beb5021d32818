"""The run folder: a content-keyed cache of stage outputs, published whole or not at all.

RUN/
  cache/<stage>-<key>/     a finished stage: its artefacts and record.json
  <stage> -> cache/...     the newest one, for people
  tmp/                     work in progress; emptied when the next run starts
  scratch/<stage>-<key>/   resumable state of an interrupted stage
  run.json, comparison.json, hashes.json, .lock
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploychain.artifact import Artifact, sha256_of
from deploychain.errors import CapabilityError
from deploychain.lock import folder_lock

RECORD_SCHEMA = "deploychain.record/3"


@dataclass(frozen=True)
class Record:
    """A finished stage: why it was made (causes), what it made, what it said."""

    stage: str
    key: str
    causes: Mapping[str, str]  # everything that entered the key, readable, for "stale because ..."
    artifacts: tuple[Artifact, ...]
    summary: Mapping[str, Any]
    notes: tuple[str, ...]
    seconds: float
    companions: tuple[Artifact, ...] = ()  # files that belong to an artefact: external data of an ONNX model

    def by_kind(self) -> dict[str, Artifact]:
        return {a.kind: a for a in self.artifacts}

    def intact(self) -> bool:
        """Are all files of the stage, companions included, still as published?"""
        return all(a.unchanged_on_disk() for a in (*self.artifacts, *self.companions))


class Workspace:
    """Access to one run folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._hashes: dict[str, tuple[int, int, str]] | None = None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run folder. The lock is the kernel's: it is gone when the process dies, however it dies.

        Raises:
            CapabilityError: the folder cannot be written, or another process holds it.
        """
        with folder_lock(
            self.root,
            name="run folder",
            busy="another run (process {holder}) is using this run folder",
            elsewhere="choose one with --run-dir",
            otherwise="wait for it, or use --run-dir",
        ):
            shutil.rmtree(self.root / "tmp", ignore_errors=True)
            yield

    def find(self, stage: str, key: str) -> Record | None:
        """The finished stage with this key, if its artefacts are still as published."""
        record = _read_record(self.root / "cache" / f"{stage}-{key}")
        if record is None or record.key != key or not record.intact():
            return None
        return record

    def latest(self, stage: str) -> Record | None:
        """The stage's newest record, whatever its key; for telling what changed."""
        return _read_record(self.root / stage)

    def work_dir(self, stage: str) -> Path:
        """An empty folder in which a stage writes; nobody takes it for a result."""
        path = self.root / "tmp" / f"{stage}-{os.getpid()}"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def scratch_dir(self, stage: str, key: str) -> Path:
        """Where an interrupted stage finds its own state again. State under another key is dropped."""
        path = self.root / "scratch" / f"{stage}-{key}"
        for other in (self.root / "scratch").glob(f"{stage}-*"):
            if other != path:
                shutil.rmtree(other, ignore_errors=True)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def publish(
        self,
        work: Path,
        *,
        stage: str,
        key: str,
        causes: Mapping[str, str],
        artifacts: Mapping[str, str],
        summary: Mapping[str, Any],
        notes: tuple[str, ...],
        seconds: float,
    ) -> Record:
        """Make a work folder a result: hash, sync, record last, then one rename.

        Args:
            artifacts: kind -> file name inside ``work``.
        """
        made = [Artifact.of(kind, work / name) for kind, name in artifacts.items()]
        named = {artifact.path for artifact in made}
        others = [
            Artifact.of("companion", path) for path in sorted(work.rglob("*")) if path.is_file() and path not in named
        ]
        for artifact in (*made, *others):
            _sync(artifact.path)
        content = {
            "schema": RECORD_SCHEMA,
            "stage": stage,
            "key": key,
            "causes": dict(causes),
            "artifacts": [_row(artifact, work) for artifact in made],
            "companions": [_row(artifact, work) for artifact in others],
            "summary": dict(summary),
            "notes": list(notes),
            "seconds": seconds,
        }
        write_json(work / "record.json", {**content, "digest": _digest(content)})
        final = self.root / "cache" / f"{stage}-{key}"
        final.parent.mkdir(exist_ok=True)
        if final.exists():
            # A forced or damaged stage: move the old one aside first, a rename cannot replace a full folder.
            old = self.root / "tmp" / f"old-{stage}-{key}"
            shutil.rmtree(old, ignore_errors=True)
            final.rename(old)
            work.rename(final)
            shutil.rmtree(old, ignore_errors=True)
        else:
            work.rename(final)
        self.point(stage, key)
        shutil.rmtree(self.root / "scratch" / f"{stage}-{key}", ignore_errors=True)
        record = _read_record(final)
        assert record is not None
        return record

    def point(self, stage: str, key: str) -> None:
        """Let RUN/<stage> lead to a cached result."""
        link, target = self.root / stage, f"cache/{stage}-{key}"
        if link.is_symlink() and str(link.readlink()) == target:
            return
        if link.exists() and not link.is_symlink():
            raise CapabilityError(
                "a file or folder of this name is in the way of the link to the newest result",
                where=str(link),
                remedy="move it away, or use --run-dir",
            )
        new = self.root / f".{stage}.link"
        new.unlink(missing_ok=True)
        new.symlink_to(target)
        new.replace(link)

    def discard(self, work: Path) -> None:
        shutil.rmtree(work, ignore_errors=True)

    def hash_of(self, path: Path) -> str:
        """sha256 of a file outside the run folder, remembered by size and modification time."""
        cache = self._load_hashes()
        stat = path.stat()
        known = cache.get(str(path))
        if known is not None and known[:2] == (stat.st_size, stat.st_mtime_ns):
            return known[2]
        digest = sha256_of(path)
        cache[str(path)] = (stat.st_size, stat.st_mtime_ns, digest)
        if self.root.is_dir():
            with suppress(OSError):  # a memory only: a read-only or full disk costs time, not the answer
                write_json(self.root / "hashes.json", cache)
        return digest

    def _load_hashes(self) -> dict[str, tuple[int, int, str]]:
        if self._hashes is None:
            try:
                raw = json.loads((self.root / "hashes.json").read_text())
                self._hashes = {str(k): (int(v[0]), int(v[1]), str(v[2])) for k, v in raw.items()}
            except (OSError, ValueError, TypeError, AttributeError, IndexError, KeyError):
                self._hashes = {}
        return self._hashes


def write_json(path: Path, value: Any) -> None:
    """Write JSON so that a reader sees the old file or the new one, never a part."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write text through a temporary file and one rename."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _digest(content: Mapping[str, Any]) -> str:
    """Tells a record that was edited by hand: its summary is shown to people."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _row(artifact: Artifact, folder: Path) -> dict[str, Any]:
    return {
        "kind": artifact.kind,
        "file": str(artifact.path.relative_to(folder)),
        "sha256": artifact.sha256,
        "size": artifact.size,
        "mtime_ns": artifact.mtime_ns,
    }


def _artifact(row: Mapping[str, Any], folder: Path) -> Artifact:
    path = folder / row["file"]
    return Artifact(str(row["kind"]), path, str(row["sha256"]), int(row["size"]), int(row["mtime_ns"]))


def _read_record(folder: Path) -> Record | None:
    """None where there is no record or it cannot be read: then the stage simply runs again."""
    try:
        raw = json.loads((folder / "record.json").read_text(encoding="utf-8"))
        digest = raw.pop("digest")
        if raw["schema"] != RECORD_SCHEMA or digest != _digest(raw):
            return None
        return Record(
            stage=str(raw["stage"]),
            key=str(raw["key"]),
            causes={str(k): str(v) for k, v in raw["causes"].items()},
            artifacts=tuple(_artifact(row, folder) for row in raw["artifacts"]),
            companions=tuple(_artifact(row, folder) for row in raw["companions"]),
            summary=dict(raw["summary"]),
            notes=tuple(str(n) for n in raw["notes"]),
            seconds=float(raw["seconds"]),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None

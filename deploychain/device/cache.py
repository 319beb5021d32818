"""The engine cache: CACHE/<bundle>/<engine>/<key>/ holds an engine, why it was made, and the builder's words.

An entry appears whole (one rename) or not at all. Its key is a hash of everything that the engine depends on, so
another device, another library or another model has another key, and what changed can be told.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploychain.artifact import sha256_of
from deploychain.device.fingerprint import EngineKey, differences
from deploychain.lock import folder_lock

ENGINE, RECORD = "engine.plan", "engine.json"


def default_cache() -> Path:
    """``$DEPLOYCHAIN_ENGINES``, else ~/.cache/deploychain/engines."""
    given = os.environ.get("DEPLOYCHAIN_ENGINES")
    return Path(given) if given else Path.home() / ".cache" / "deploychain" / "engines"


@dataclass(frozen=True, slots=True)
class Entry:
    """A cached engine. ``record`` is what the build noted: facts, command, seconds."""

    folder: Path
    record: Mapping[str, Any]

    @property
    def engine(self) -> Path:
        return self.folder / ENGINE


class EngineCache:
    """Engines of one bundle on this device."""

    def __init__(self, root: Path, bundle: str) -> None:
        # Absolute: builders run in folders of their own.
        self.root = root.absolute() / re.sub(r"[^A-Za-z0-9._-]", "_", bundle)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the cache: two containers that start at once build once.

        Raises:
            CapabilityError: the folder cannot be written, or another process is building.
        """
        with folder_lock(
            self.root,
            name="engine cache",
            busy="another process is building engines in this cache",
            elsewhere="name another one with --cache, or mount a volume that this user may write",
            otherwise="wait for it, or name another one with --cache",
        ):
            yield

    def find(self, engine: str, key: EngineKey) -> Entry | None:
        """The engine with this very key, if its bytes are still those that were built."""
        entry = self._read(self.root / engine / key.digest())
        if entry is None or not entry.engine.is_file() or sha256_of(entry.engine) != entry.record.get("sha256"):
            return None
        return entry

    def why(self, engine: str, key: EngineKey) -> str:
        """Why there is no engine for this key: the newest other one, and what differs."""
        if (self.root / engine / key.digest()).exists():
            return "the cached engine is damaged"
        others = [e for e in map(self._read, (self.root / engine).glob("*")) if e is not None]
        if not others:
            return "first build"
        newest = max(others, key=lambda e: (e.folder / RECORD).stat().st_mtime_ns)
        return "; ".join(differences(newest.record.get("facts", {}), key.facts())) or "the request changed"

    @contextmanager
    def adding(self, engine: str, key: EngineKey) -> Iterator[Path]:
        """A work folder that becomes the entry when the body ends well and has written its record."""
        parent = self.root / engine
        parent.mkdir(parents=True, exist_ok=True)
        for left in parent.glob(".work-*"):  # of a build that was killed; the lock is ours
            shutil.rmtree(left, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=".work-", dir=parent))
        try:
            yield work
            if (work / RECORD).is_file() and (work / ENGINE).is_file():
                final = parent / key.digest()
                if final.exists():
                    shutil.rmtree(final)
                work.rename(final)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _read(self, folder: Path) -> Entry | None:
        try:
            record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return Entry(folder, record) if isinstance(record, dict) else None


def write_record(work: Path, key: EngineKey, more: Mapping[str, Any]) -> None:
    """Close an entry: facts, the engine's sha256, and what the build noted."""
    record = {"facts": key.facts(), "sha256": sha256_of(work / ENGINE), **more}
    (work / RECORD).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

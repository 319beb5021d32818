"""What a chain is given instead of making it: start files and watched data."""

from __future__ import annotations

from pathlib import Path

from deploychain.config import Pipeline
from deploychain.errors import ConfigError


def start_files(pipeline: Pipeline) -> dict[str, Path]:
    """kind -> file for everything that the chain is given instead of making it.

    Raises:
        ConfigError: a file does not exist.
    """
    files: dict[str, tuple[str, tuple[str, ...]]] = {}
    start = pipeline.settings.start
    if start is not None:
        for name, kind in (
            ("checkpoint", "checkpoint"),
            ("weights", "weights"),
            ("onnx", "onnx-fp32"),
            ("onnx_qat", "onnx-qat"),
        ):
            value = getattr(start, name)
            if value is not None:
                files[kind] = (value, ("start", name))
    if pipeline.settings.data is not None:
        files["data"] = (pipeline.settings.data, ("data",))
    made = {}
    for kind, (text, key) in files.items():
        path = pipeline.base / text
        if not path.is_file():
            raise ConfigError(
                f"{'.'.join(key)}: the file {path} does not exist",
                where=pipeline.where(*key),
                remedy="the path is relative to the pipeline file",
            )
        made[kind] = path.resolve()
    return made


def watched_files(pipeline: Pipeline) -> list[Path]:
    found: list[Path] = []
    for index, pattern in enumerate(pipeline.settings.watch):
        files = [p.resolve() for p in _matches(pipeline.base, pattern) if p.is_file()]
        if not files:
            raise ConfigError(
                f"watch: {pattern!r} matches no file",
                where=pipeline.where("watch", index),
                remedy="the pattern is relative to the pipeline file",
            )
        found.extend(files)
    return found


def _matches(base: Path, pattern: str) -> list[Path]:
    anchor = Path(pattern).anchor
    try:
        return sorted(Path(anchor).glob(pattern.removeprefix(anchor)) if anchor else base.glob(pattern))
    except ValueError:  # empty, or "a**b"
        return []

"""Finding and reading the files of an audit. Nothing is imported and nothing of the user's code runs."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

MAX_BYTES = 2_000_000  # hand-written training code is far smaller; generated files of 5 MB take minutes to analyse
SKIPPED_FOLDERS = frozenset(
    {
        ".git",
        ".hg",
        ".venv",
        "venv",
        "node_modules",
        "__pycache__",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".ruff_cache",
        "site-packages",
    }
)
_IGNORE = re.compile(r"#\s*deploychain:\s*ignore\[([A-Za-z0-9,\s]+)\]")
_PYTHON_2 = re.compile(
    r"^\s*(print\s+[\"'\w]|except\s+[\w.]+\s*,\s*\w+\s*:|raise\s+\w+\s*,|exec\s+[\"'])", re.MULTILINE
)


class UnreadableSource(Exception):
    """A file that cannot be audited; the text says why."""


@dataclass(frozen=True, slots=True)
class Source:
    """One parsed file. In a notebook `lines` maps a line of the joined code cells to (cell, line in the cell)."""

    path: str
    text: str
    tree: ast.Module
    cells: tuple[tuple[int, int], ...] = ()
    ignored: dict[int, frozenset[str]] = field(default_factory=dict)  # line -> rules


def discover(paths: Iterable[Path], exclude: Iterable[str] = ()) -> Iterator[Path]:
    """Python files and notebooks below the given paths, sorted, each once. Named files are always taken."""
    patterns = tuple(exclude)
    seen: set[Path] = set()
    for path in paths:
        found = [path] if not path.is_dir() else sorted(_walk(path, patterns))
        for file in found:
            key = file.resolve()
            if key not in seen:
                seen.add(key)
                yield file


def _walk(folder: Path, exclude: tuple[str, ...]) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if any(entry.match(pattern) for pattern in exclude):
            continue
        if entry.is_symlink() and entry.is_dir():
            continue
        if entry.is_dir():
            if entry.name not in SKIPPED_FOLDERS:
                yield from _walk(entry, exclude)
        elif entry.suffix in (".py", ".pyw", ".ipynb"):
            yield entry


def load(path: Path) -> Source:
    """Read and parse one file.

    Raises:
        UnreadableSource: the file cannot be read, decoded or parsed as Python 3, or is too large.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise UnreadableSource(f"{size / 1e6:.1f} MB: larger than the {MAX_BYTES / 1e6:.0f} MB that are analysed")
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableSource(f"cannot be read: {error.strerror}") from None
    if path.suffix == ".ipynb":
        return parse(str(path), *_notebook(data))
    return parse(str(path), _decode(data))


def _decode(data: bytes) -> str:
    if b"\0" in data:
        raise UnreadableSource("contains null bytes: not Python source")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except (SyntaxError, LookupError) as error:
        raise UnreadableSource(f"unknown encoding: {error}") from None
    except UnicodeDecodeError as error:
        raise UnreadableSource(f"not valid {error.encoding}: byte {error.start} cannot be decoded") from None


def _notebook(data: bytes) -> tuple[str, tuple[tuple[int, int], ...]]:
    try:
        document = json.loads(data)
        cells = document["cells"]
        if not isinstance(cells, list):
            raise TypeError("cells is not a list")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableSource(f"not a notebook: {error!r}") from None
    lines: list[str] = []
    places: list[tuple[int, int]] = []
    for number, cell in enumerate(cells, start=1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        text = "".join(map(str, source)) if isinstance(source, list) else str(source)
        if text.lstrip().startswith("%%") and not text.lstrip().startswith(("%%time", "%%capture")):
            continue  # another language
        for offset, line in enumerate(text.splitlines(), start=1):
            lines.append(_without_magic(line))
            places.append((number, offset))
    return "\n".join(lines) + "\n", tuple(places)


def _without_magic(line: str) -> str:
    stripped = line.lstrip()
    if stripped.startswith(("%", "!", "?")) or (stripped.endswith("?") and "=" not in stripped):
        return line[: len(line) - len(stripped)] + "pass"
    return line


def parse(path: str, text: str, cells: tuple[tuple[int, int], ...] = ()) -> Source:
    """Parse source text. Raises UnreadableSource with the line of the error."""
    text = text.replace("\r\n", "\n")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the user's strings are not our business
            tree = ast.parse(text)
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        hint = " (Python 2 code)" if _PYTHON_2.search(text) else ""
        raise UnreadableSource(f"{where}syntax error: {error.msg}{hint}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise UnreadableSource(f"cannot be parsed: {error or type(error).__name__}") from None
    return Source(path, text, tree, cells, _ignores(text))


def _ignores(text: str) -> dict[int, frozenset[str]]:
    if "deploychain:" not in text:
        return {}
    found: dict[int, frozenset[str]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        match = _IGNORE.search(line)
        if match:
            found[number] = frozenset(part.strip().upper() for part in match[1].split(",") if part.strip())
    return found

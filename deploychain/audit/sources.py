"""Finding and reading the files of an audit. Nothing is imported and nothing of the user's code runs."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import stat
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from deploychain.audit.astnames import write_out

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
_IGNORE = re.compile(r"#\s*deploychain:\s*ignore\b(?:\[([^\]]*)\])?")
# What `write_out` writes out; few files have any of it.
_WRITTEN_SHORT = re.compile(
    r"\bgetattr\([^'\"]{1,120},\s*['\"]\w+['\"]\s*,?\s*\)|\bsetattr\([^'\"]{1,120},\s*['\"]|^\s*\w+\s*=\s*lambda\b"
    r"|\belse\b[^\n]*\)\.\w+\([^,)]*\)",
    re.MULTILINE,
)
_ASSIGNED_MAGIC = re.compile(r"^(\s*[\w, .]+=\s*)[!%]\S")
_PYTHON_2 = re.compile(
    r"^\s*(print\s+[\"'\w]|except\s+[\w.]+\s*,\s*\w+\s*:|raise\s+\w+\s*,|exec\s+[\"'])", re.MULTILINE
)
# Comments and strings, whichever starts first.
_TOKENS = re.compile(
    r"#[^\n]*|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL
)


class UnreadableSource(Exception):
    """A file that cannot be audited; the text says why."""


@dataclass(frozen=True)
class Source:
    """One parsed file. In a notebook `lines` maps a line of the joined code cells to (cell, line in the cell)."""

    path: str
    text: str
    tree: ast.Module
    cells: tuple[tuple[int, int], ...] = ()
    ignored: dict[int, frozenset[str]] = field(default_factory=dict)  # line -> rules
    left_out: tuple[str, ...] = ()  # cells of a notebook that are no Python, and why

    @cached_property
    def code(self) -> str:
        """The text with blanks for comments and docstrings: what these mention says nothing about the code."""
        text = _TOKENS.sub(lambda m: " " * len(m[0]) if m[0].startswith("#") else m[0], self.text)
        lines = text.split("\n")
        for first, last in _docstrings(self.tree):
            lines[first - 1 : last] = [""] * (last - first + 1)
        return "\n".join(lines)

    @cached_property
    def words(self) -> str:
        """The code without what stands in strings."""
        return _TOKENS.sub(" ", self.code)


def discover(paths: Iterable[Path], exclude: Iterable[str] = ()) -> Iterator[Path]:
    """Python files and notebooks below the given paths, sorted, each once. Named files are always taken."""
    patterns = tuple(exclude)
    seen: set[str] = set()
    for path in paths:
        found = [path] if not path.is_dir() else sorted(_walk(path, patterns))
        for file in found:
            key = os.path.realpath(file)  # Path.resolve raises on a link to itself
            if key not in seen:
                seen.add(key)
                yield file


def _walk(folder: Path, exclude: tuple[str, ...]) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        yield folder  # `load` says why it cannot be read
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
        found = path.stat()
        size = found.st_size
        if stat.S_ISDIR(found.st_mode):
            next(path.iterdir(), None)  # raises where it may not be read
        if not stat.S_ISREG(found.st_mode):
            raise UnreadableSource("not a file: a folder, pipe, socket or device")  # reading a pipe would wait for ever
        if size > MAX_BYTES:
            raise UnreadableSource(f"{size / 1e6:.1f} MB: larger than the {MAX_BYTES / 1e6:.0f} MB that are analysed")
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableSource(f"cannot be read: {error.strerror}") from None
    if path.suffix == ".ipynb":
        text, cells, left_out = _notebook(data)
        return replace(parse(str(path), text, cells), left_out=left_out)
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


def _notebook(data: bytes) -> tuple[str, tuple[tuple[int, int], ...], tuple[str, ...]]:
    """(text of the code cells, place of each line, what was left out) of a notebook."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableSource(f"not a notebook: {error}") from None
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list):
        raise UnreadableSource("not a notebook: no list of cells (notebook format 4 has one)")
    lines: list[str] = []
    places: list[tuple[int, int]] = []
    left_out: list[str] = []
    for number, cell in enumerate(cells, start=1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        text = "".join(map(str, source)) if isinstance(source, list) else str(source)
        if text.lstrip().startswith("%%") and not text.lstrip().startswith(("%%time", "%%capture", "%%prun")):
            continue  # another language
        text, wrong = _python_of(text)
        if wrong:
            left_out.append(f"cell {number}, {wrong}")
            continue
        for offset, line in enumerate(text.split("\n"), start=1):
            lines.append(line)
            places.append((number, offset))
    return "\n".join(lines) + "\n", tuple(places), tuple(left_out)


def _python_of(cell: str) -> tuple[str, str]:
    """A cell as plain Python with as many lines, and why that cannot be had."""
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    if _syntax_error(text) is None:
        return text, ""  # `% name` on a line of its own may be the end of an expression
    lines = []
    continued = False
    for line in text.split("\n"):
        body = line.lstrip()
        command = body.startswith(("%", "!", "?"))
        indent = line[: len(line) - len(body)]
        if continued:
            lines.append("")
        elif command or (body.endswith("?") and "=" not in body):
            lines.append(indent + "pass")
        elif assigned := _ASSIGNED_MAGIC.match(line):
            lines.append(assigned[1] + "None")  # files = !ls
        else:
            lines.append(line)
        continued = (command or continued) and body.endswith("\\")
    plain = "\n".join(lines)
    return plain, _syntax_error(plain) or ""


def _syntax_error(text: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<cell>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        return f"line {error.lineno}: syntax error: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"cannot be parsed: {error or type(error).__name__}"
    return None


def parse(path: str, text: str, cells: tuple[tuple[int, int], ...] = ()) -> Source:
    """Parse source text. Raises UnreadableSource with the line of the error."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # Python takes all three for the end of a line
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
    if _WRITTEN_SHORT.search(text):
        write_out(tree)
    return Source(path, text, tree, cells, _ignores(text))


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """The lines of every string that stands alone: nothing reads it."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                yield node.lineno, node.end_lineno or node.lineno
        elif isinstance(node, ast.stmt | ast.Module | ast.ExceptHandler | ast.match_case):
            stack += ast.iter_child_nodes(node)


def _ignores(text: str) -> dict[int, frozenset[str]]:
    if "deploychain:" not in text:
        return {}
    found: dict[int, frozenset[str]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        match = _IGNORE.search(line)
        if match:
            found[number] = frozenset(part.strip().upper() for part in (match[1] or "").split(",") if part.strip())
    return found

"""The time of each layer: ``--exportProfile`` JSON (valid or not) and the ``--dumpProfile`` table."""

from __future__ import annotations

import json
import re
from array import array

from deploychain.engine.layerjson import too_dense
from deploychain.engine.model import Profile

_NAN = float("nan")
_COUNT = re.compile(r'"count"\s*:\s*(\d{1,18})')
_FIELD = re.compile(r'"(timeMs|averageMs|medianMs|percentage)"\s*:\s*([-+.\w]+)')


def number(text: str) -> float:
    """Any number that a C++ stream prints: ``1``, ``1e-05``, ``nan``, ``-nan(ind)``, ``inf``; NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return _NAN


class ProfileBuilder:
    """Collects rows column by column."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.total = array("d")
        self.mean = array("d")

    def add(self, name: str, total: float, mean: float) -> None:
        self.names.append(name)
        self.total.append(total)
        self.mean.append(mean)

    def build(self, iterations: int | None, **facts: object) -> Profile:
        return Profile(tuple(self.names), self.total, self.mean, iterations, **facts)  # type: ignore[arg-type]


def parse_profile_json(text: str) -> tuple[Profile, str | None]:
    """Read an exported profile; what is no JSON is read by rows: trtexec writes names unescaped, and bare ``nan``.

    Returns:
        The profile, and a problem where the text is not valid JSON or is cut.
    """
    if too_dense(text):
        return ProfileBuilder().build(None, complete=False, layout="json"), "not a profile: far more objects than text"
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return _by_rows(text)
    return _from_document(document), None


def _from_document(document: object) -> Profile:
    rows = ProfileBuilder()
    iterations: int | None = None
    median = False
    for entry in document if isinstance(document, list) else []:
        if not isinstance(entry, dict):
            continue
        if "name" in entry:
            median = median or "medianMs" in entry
            rows.add(str(entry["name"]), _number(entry.get("timeMs")), _number(entry.get("averageMs")))
        elif isinstance(entry.get("count"), int) and iterations is None:
            iterations = entry["count"]
    return rows.build(iterations, has_median=median, layout="json")


def _number(value: object) -> float:
    if isinstance(value, str):
        return number(value)
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return _NAN


def _by_rows(text: str) -> tuple[Profile, str | None]:
    rows = ProfileBuilder()
    found = _COUNT.search(text[:10_000])
    iterations = int(found.group(1)) if found else None
    median = unescaped = nan = False
    broken = 0
    for line in _rows(text):
        start = line.find('"name"')
        if start < 0:
            continue
        start = line.find('"', line.find(":", start) + 1) + 1
        end = line.rfind('"timeMs"')
        stop = line.rfind('"', start, end)
        if start <= 0 or end < 0 or stop < start:
            broken += 1
            continue
        name = line[start:stop]
        if "\\" in name or '"' in name or not name.isprintable():
            name, escaped = _unescape(name)
            unescaped = unescaped or not escaped
        fields = dict(_FIELD.findall(line[end:]))
        if "percentage" not in fields:
            broken += 1  # the row is cut; what it has is still read
            if "averageMs" not in fields:
                continue
        median = median or "medianMs" in fields
        total, mean = number(fields.get("timeMs", "")), number(fields.get("averageMs", ""))
        nan = nan or "nan" in line[end:] or "inf" in line[end:]
        rows.add(name, total, mean)
    complete = text.rstrip().endswith("]") and not broken
    problem = None
    if not complete:
        problem = f"the profile is cut: {len(rows.names)} whole rows before the cut"
    elif unescaped:
        problem = (
            "not valid JSON: a name holds unescaped quotes or backslashes (trtexec does not escape); rows were read"
        )
    elif nan:
        problem = (
            "not valid JSON: nan where nothing was timed (trtexec writes it bare); names were read, times are unknown"
        )
    return rows.build(iterations, complete=complete, has_median=median, layout="json"), problem


def _rows(text: str) -> list[str]:
    """One row per line as trtexec writes it; a file that was reformatted is cut at the row braces instead."""
    lines = text.split("\n")
    if any('"name"' in line and '"timeMs"' in line for line in lines[:12]):
        return [line for line in lines if '"name"' in line]
    flat = text.replace("\r", " ").replace("\n", " ")
    return re.split(r'(?=\{\s*"name"\s*:)', flat)


_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})')
_PLAIN = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def _unescape(name: str) -> tuple[str, bool]:
    """The name with JSON escapes undone where it holds nothing else, and whether it was proper JSON.

    A name that trtexec wrote raw (with a bare quote or backslash) is kept as it stands.
    """
    bare = _ESCAPE.sub("", name)
    if "\\" in bare or '"' in bare or any(c < " " for c in bare):
        return name, False

    def one(found: re.Match[str]) -> str:
        code = found.group(1)
        return chr(int(code[1:], 16)) if code[0] == "u" else _PLAIN.get(code, code)

    return _ESCAPE.sub(one, name), True


# -- the table ------------------------------------------------------------------------------------------------------

HEADER = re.compile(r"=== Profile \((\d{1,18}) iterations ?\) ===")
_NUMBER = r"-?(?:nan(?:\(\w+\))?|inf|[\d.]+(?:[eE][-+]?\d+)?)"
_LAST = re.compile(rf"\s*({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})(?:   (.*)|\s*)$", re.S)


class TableReader:
    """Reads the rows after a ``=== Profile (N iterations ) ===`` line, one at a time, until the table ends."""

    def __init__(self, iterations: int) -> None:
        self.iterations = iterations
        self.layout = ""
        self.median = False
        self.done = False
        self._rows = ProfileBuilder()
        self._last: tuple[str, float, float] | None = None  # the last row may be the Total

    def feed(self, text: str) -> bool:
        """Take one line; False where it does not belong to the table (which then has ended)."""
        if self.done:
            return False
        if not self.layout:
            return self._columns(text)
        if not text.strip():
            return True  # Markdown copies have an empty line after each line: a line that is no row ends the table
        row = self._row(text)
        if row is None:
            self.done = True
            return False
        if self._last is not None:
            self._rows.add(*self._last)
        self._last = row
        return True

    def _columns(self, text: str) -> bool:
        words = text.split()
        if not words:
            return True
        if "Layer" not in words or "Time" not in text:
            self.done = True
            return False
        self.layout = "name last" if words[-1] == "Layer" else "name first"
        self.median = "Median" in text
        return True

    def _row(self, text: str) -> tuple[str, float, float] | None:
        if self.layout == "name last":
            found = _LAST.match(text[:100_000])
            return (found.group(5) or "", number(found.group(1)), number(found.group(2))) if found else None
        # Read from the right: names contain blanks and numbers.
        fields = text.rsplit(None, 4 if self.median else 3)
        numbers = fields[1:] if len(fields) == (5 if self.median else 4) else fields
        if len(numbers) < (4 if self.median else 3) or not all(re.fullmatch(_NUMBER, n) for n in numbers):
            return None
        name = fields[0].strip() if len(fields) > len(numbers) else ""
        return name, number(numbers[0]), number(numbers[1])

    @property
    def empty(self) -> bool:
        return not self._rows.names and self._last is None

    def finish(self) -> Profile:
        """The profile. Only the last row, and only if it is called Total, is the sum; without it the table is cut."""
        complete, total = False, None
        if self._last is not None:
            if self._last[0].strip() == "Total":
                complete, total = True, self._last[1]
            else:
                self._rows.add(*self._last)
            self._last = None
        return self._rows.build(
            self.iterations,
            printed_total_ms=total,
            complete=complete,
            skips_zero_rows=self.median,
            has_median=self.median,
            layout=self.layout,
        )

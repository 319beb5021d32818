"""Text files as they really are: packed, UTF-16, byte-order marks, CRLF and CR, ANSI colours, HTML entities, and
prefixes that others put in front.

Lines come in pieces of bounded size whatever the file holds, so that memory does not grow with it.
"""

from __future__ import annotations

import codecs
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from deploychain.engine.packed import MAX_UNPACKED_WHOLE, is_packed, open_bytes, text_size
from deploychain.errors import ArtifactError

HEAD_BYTES = 256 * 1024
_CHUNK = 1 << 18
_MAX_LINE = 1 << 20  # characters; a longer line is handed out in pieces

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,300}(?:\x07|\x1b\\)|[()][A-B0-2])")

_MARKS = re.compile(
    r"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] |&&&& [A-Z_]+ |\[[FEWIV]\] |\[TRT\] \[|\[TensorRT\] [A-Z]"
    r"|Name: (?=.*, LayerType: )"
    r"|Layer\([A-Za-z0-9_]+\): (?=.*, Tactic: )"
)

# A log that was saved from a web page: `&&&& PASSED` and `in -> out` as HTML writes them, and never as they are.
_ESCAPED = re.compile(r"&amp;&amp;&amp;&amp; [A-Z]|-&gt; |&quot;(?:Layers|LayerType|Type|count)&quot;")
_PLAIN = re.compile(r"&&&& [A-Z]|-> ")
_ENTITIES = {
    "lt": "<",
    "gt": ">",
    "amp": "&",
    "quot": '"',
    "apos": "'",
    "#39": "'",
    "#x27": "'",
    "#34": '"',
    "nbsp": " ",
}
_ENTITY = re.compile("&(" + "|".join(_ENTITIES) + ");")


def detect_encoding(head: bytes) -> str:
    """The encoding, from a byte-order mark or from the zero bytes of UTF-16; UTF-8 otherwise."""
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if head.startswith(mark):
            return name
    sample = head[:4096]
    if len(sample) >= 8:
        even, odd = sample[::2].count(0), sample[1::2].count(0)
        if odd > len(sample) * 0.35 and even < len(sample) * 0.05:
            return "utf-16-le"
        if even > len(sample) * 0.35 and odd < len(sample) * 0.05:
            return "utf-16-be"
    return "utf-8"


def read_head(path: Path) -> bytes:
    """The first bytes of a file, unpacked.

    Raises:
        ArtifactError: the file cannot be read.
    """
    try:
        with open_bytes(path) as file:
            return file.read(HEAD_BYTES)
    except (OSError, EOFError) as error:
        what = error.strerror if isinstance(error, OSError) else None
        raise ArtifactError(f"cannot be read: {what or error}", where=str(path)) from None


def read_text(path: Path, limit: int = 1 << 30) -> str:
    """A whole file as text, unpacked, decoding errors replaced; old Macintosh line ends become line feeds.

    Raises:
        ArtifactError: the file cannot be read, or is larger than ``limit`` bytes.
    """
    try:
        size = text_size(path)
        if is_packed(path):
            limit = min(limit, MAX_UNPACKED_WHOLE)
        if size > limit:
            raise ArtifactError(f"{size} bytes: too large to be read whole", where=str(path))
        with open_bytes(path) as file:
            raw = file.read(size)  # what was measured; a read of `limit` would reserve all of it
    except OSError as error:
        raise ArtifactError(f"cannot be read: {error.strerror or error}", where=str(path)) from None
    text = raw.decode(detect_encoding(raw[:HEAD_BYTES]), errors="replace")
    return text.replace("\r", "\n") if _only_returns(text[:HEAD_BYTES]) else text


def _only_returns(head: str) -> bool:
    """Whether lines end with a carriage return alone, as in files that old editors and serial consoles leave."""
    return "\r" in head and "\n" not in head


def strip_ansi(text: str) -> str:
    return _ANSI.sub("", text) if "\x1b" in text else text


class LineSource:
    """The lines of a text file, and the cleaning that fits this file.

    Iterating `chunks` yields lists of raw lines (cheap to skip by the million); `clean` turns the few that matter
    into what TensorRT printed.
    """

    def __init__(self, path: Path, head: bytes) -> None:
        self.path = path
        self.encoding = detect_encoding(head)
        text = head.decode(self.encoding, errors="replace")
        # Elsewhere a carriage return is a progress bar's, or the first half of a line end.
        self._newline: str | None = None if _only_returns(text) else "\n"
        self.escaped = _ESCAPED.search(text) is not None and _PLAIN.search(text) is None
        self._json_log = False
        self._prefix = self._find_prefix(text)

    def chunks(self) -> Iterator[list[str]]:
        """Lists of raw lines without their line feeds.

        Raises:
            ArtifactError: reading fails half-way.
        """
        rest = ""
        try:
            raw = open_bytes(self.path)
            with io.TextIOWrapper(raw, encoding=self.encoding, errors="replace", newline=self._newline) as file:
                while True:
                    block = file.read(_CHUNK)
                    if not block:
                        break
                    lines = (rest + block).split("\n")
                    rest = lines.pop()
                    if lines:
                        yield lines
                    if len(rest) > _MAX_LINE:
                        yield [rest]
                        rest = ""
        except (OSError, EOFError, UnicodeError) as error:
            raise ArtifactError(f"cannot be read to its end: {error}", where=str(self.path)) from None
        if rest:
            yield [rest]

    def clean(self, line: str) -> str:
        """Take away line ends, colours, HTML entities, the wrapping of docker's JSON log and the prefix common to the
        lines.
        """
        line = line.rstrip("\r")
        if self.escaped and "&" in line:
            line = _unescape(line)
        if self._json_log and line.startswith('{"log":'):
            line = _unwrap(line)
        if "\x1b" in line:
            line = _ANSI.sub("", line)
        if self._prefix is not None:
            found = self._prefix.match(line)
            if found:
                return line[found.end() :]
        return line

    def _find_prefix(self, head: str) -> re.Pattern[str] | None:
        patterns: Counter[str] = Counter()
        marked = 0
        for line in head.split("\n" if self._newline else "\r")[:3000]:
            line = strip_ansi(line.rstrip("\r"))
            if self.escaped:
                line = _unescape(line)
            if line.startswith('{"log":'):
                self._json_log = True
                line = strip_ansi(_unwrap(line))
            mark = _MARKS.search(line[:2000])
            if mark is None:
                continue
            marked += 1
            before = line[: mark.start()]
            if len(before) <= 200:
                patterns[_generalise(before)] += 1
        # A prefix is stripped only if it is common: at least a tenth of the marked lines must carry it.
        usual = [p for p, n in patterns.most_common(4) if p and n * 10 >= marked and n >= 2]
        if not usual:
            return None
        try:
            return re.compile("(?:" + "|".join(usual) + ")")
        except re.error:
            return None


_PIECES = re.compile(
    r"\d+|[ \t]+|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b|.", re.S
)


def _generalise(prefix: str) -> str:
    """A pattern for one prefix and its like: numbers, blanks and month names may vary."""
    parts: list[str] = []
    for piece in _PIECES.findall(prefix):
        if piece.isdigit() and piece.isascii():
            parts.append("[0-9]+")
        elif piece.isspace():
            parts.append("[ \t]+")
        elif len(piece) == 3 and piece.isalpha():
            parts.append("[A-Z][a-z]{2}")
        else:
            parts.append(re.escape(piece))
    return "".join(parts)


def _unescape(line: str) -> str:
    """The text of HTML, once: what was escaped twice is not what TensorRT printed."""
    return _ENTITY.sub(lambda found: _ENTITIES[found.group(1)], line)


def _unwrap(line: str) -> str:
    """The text in a line of docker's json-file log: ``{"log":"text\\n","stream":"stderr","time":"..."}``."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return line
    text = record.get("log") if isinstance(record, dict) else None
    return text.rstrip("\r\n") if isinstance(text, str) else line

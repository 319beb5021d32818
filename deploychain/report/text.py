"""Names of layers, files and metrics are data. Here they are made harmless for each output format.

`visible` comes first everywhere: control characters, escape sequences, bidirectional overrides and characters that XML
forbids become visible escapes. Then each format escapes what it gives a meaning to.
"""

from __future__ import annotations

import math

from deploychain.records import EvalReport


def visible(text: str) -> str:
    """Replace every character that is not printable (ANSI escapes, NUL, newlines, bidi marks, lone surrogates)."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(ord(c)) for c in text)


def _escape(code: int) -> str:
    if code in (0x0A, 0x0D, 0x09):
        return " "
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def shorten(text: str, limit: int = 160) -> str:
    """Cut the middle out of a text that is longer than `limit` characters: both ends of a layer name matter."""
    if len(text) <= limit:
        return text
    head = (limit - 5) * 2 // 3
    return f"{text[:head]} ... {text[len(text) - (limit - 5 - head) :]}"


# Entities, because a table cell is split at "|" before any backslash is looked at, and "@name", "#1" and "<tag>" mean
# something to the sites that show Markdown.
_MARKDOWN = str.maketrans({c: f"&#{ord(c)};" for c in "|`<>&#@*_~[]\\!$"})


def markdown(text: str, limit: int = 300) -> str:
    """A text for a Markdown paragraph or table cell, taken literally."""
    return shorten(visible(text), limit).translate(_MARKDOWN).replace("://", ":&#47;&#47;").replace("www.", "www&#46;")


def number(value: float | None, digits: int = 5) -> str:
    """A number for people; a dash where it is not known."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e12:
        return f"{int(value)}"
    return f"{value:.{digits}g}"


def agreement(report: EvalReport) -> str:
    """Share of equal decisions; ``unknown`` where there are decisions that tell nothing, empty where there are none."""
    if report.agreement is not None:
        return f"{100 * report.agreement:.1f} %"
    return "unknown" if any("agreement" in row for row in report.per_output.values()) else ""

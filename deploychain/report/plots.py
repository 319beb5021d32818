"""Plots as inline SVG, built as XML so that no name can break out, coloured by the page; and sparklines of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

from deploychain.report.text import number, shorten, visible

Tone = Literal["plain", "good", "warn", "bad"]
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Dot:
    """One row of a dot plot: a value, what is possible around it, and what it is held against."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    limit: float | None = None
    reference: float | None = None
    points: tuple[float, ...] = ()
    tone: Tone = "plain"
    note: str = ""


def _svg(width: int, height: int, title: str) -> ElementTree.Element:
    root = ElementTree.Element(
        "svg",
        {"viewBox": f"0 0 {width} {height}", "role": "img", "class": "plot", "xmlns": "http://www.w3.org/2000/svg"},
    )
    ElementTree.SubElement(root, "title").text = visible(title)
    return root


def _line(parent: ElementTree.Element, x1: float, y1: float, x2: float, y2: float, name: str) -> ElementTree.Element:
    points = {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}"}
    return ElementTree.SubElement(parent, "line", {**points, "class": name})


def _text(parent: ElementTree.Element, x: float, y: float, text: str, name: str = "", anchor: str = "start") -> None:
    attributes = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    ElementTree.SubElement(parent, "text", {**attributes, **({"class": name} if name else {})}).text = visible(text)


def _tooltip(element: ElementTree.Element, text: str) -> None:
    ElementTree.SubElement(element, "title").text = visible(text)


def _known(row: Dot, log: bool) -> list[float]:
    values = [row.value, row.low, row.high, row.limit, row.reference, *row.points]
    return [v for v in values if v is not None and math.isfinite(v) and (v > 0 or not log)]


def _ticks(low: float, high: float, log: bool) -> list[float]:
    """Round numbers inside the range: powers of ten, or steps of 1, 2 or 5."""
    if log:
        first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
        step = max(1, math.ceil((last - first) / 6))
        return [10.0**e for e in range(first, last + 1, step)]
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    size = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    count = int((high - math.ceil(low / size) * size) / size + 1e-9)
    return [(math.ceil(low / size) + i) * size for i in range(count + 1)]


def dot_plot(rows: Sequence[Dot], title: str, *, unit: str = "", log: bool = False) -> str:
    """A horizontal dot plot, one row a stage: dot = value, whisker = interval, bar = limit, ring = reference."""
    known = [v for row in rows for v in _known(row, log)]
    if not known:
        return ""
    left, right, step, top = 116, 64, 26, 8
    width, height = 540, top + step * len(rows) + 30
    scaled = [math.log10(v) if log else v for v in known]
    low, high = min(scaled), max(scaled)
    pad = (high - low) * 0.08 or abs(high) * 0.02 or 1.0
    low, high = low - pad, high + pad

    def x(value: float) -> float:
        return left + ((math.log10(value) if log else value) - low) / (high - low) * (width - left - right)

    root = _svg(width, height, title)
    bottom = top + step * len(rows)
    for tick in _ticks(low, high, log):
        _line(root, x(tick), top, x(tick), bottom, "grid")
        text = f"1e{round(math.log10(tick))}" if log else f"{tick:.6g}"
        _text(root, x(tick), bottom + 14, text, "tick", "middle")
    _text(root, width - right, bottom + 27, unit, "tick", "end")
    for index, row in enumerate(rows):
        y = top + step * index + step / 2
        _line(root, left, y, width - right, y, "row")
        _text(root, left - 8, y + 4, shorten(row.label, 17), "label", "end")
        if row.value is None or not math.isfinite(row.value) or (log and row.value <= 0):
            _text(root, left + 6, y + 4, row.note or "not measured", "tick")
            continue
        if row.low is not None and row.high is not None and not (log and row.low <= 0):
            _line(root, x(row.low), y, x(row.high), y, f"whisker {row.tone}")
        if row.limit is not None and not (log and row.limit <= 0):
            mark = _line(root, x(row.limit), y - 9, x(row.limit), y + 9, "limit")
            _tooltip(mark, f"limit {number(row.limit)}")
        if row.reference is not None and not (log and row.reference <= 0):
            ring = {"cx": f"{x(row.reference):.1f}", "cy": f"{y:.1f}", "r": "5", "class": "ring"}
            _tooltip(ElementTree.SubElement(root, "circle", ring), f"reference {number(row.reference)}")
        for point in row.points:
            if point > 0 or not log:
                small = {"cx": f"{x(point):.1f}", "cy": f"{y:.1f}", "r": "2", "class": "point"}
                ElementTree.SubElement(root, "circle", small)
        dot = {"cx": f"{x(row.value):.1f}", "cy": f"{y:.1f}", "r": "4", "class": f"dot {row.tone}"}
        _tooltip(ElementTree.SubElement(root, "circle", dot), f"{row.label}: {number(row.value)} {unit}".strip())
        _text(root, width - right + 8, y + 4, number(row.value, 2 if log else 4), "value")
    return ElementTree.tostring(root, encoding="unicode")


def stacked_bar(parts: Sequence[tuple[str, int]], title: str) -> str:
    """One horizontal bar of (class name, count): how the layers of an engine were judged."""
    total = sum(count for _, count in parts)
    if not total:
        return ""
    width, height = 640, 14
    root = _svg(width, height, title)
    root.set("class", "plot bar")
    root.set("preserveAspectRatio", "none")
    at = 0.0
    for name, count in parts:
        if count:
            size = width * count / total
            box = {"x": f"{at:.2f}", "y": "0", "width": f"{max(size, 1.0):.2f}", "height": str(height), "class": name}
            _tooltip(ElementTree.SubElement(root, "rect", box), f"{count} {name}")
            at += size
    return ElementTree.tostring(root, encoding="unicode")


def line_plot(values: Sequence[float | None], title: str, *, limit: float | None = None) -> str:
    """A small line over accepted baselines, first to last; a gap where a value is not known."""
    known = [v for v in values if v is not None and math.isfinite(v)]
    if not known:
        return ""
    width, height, pad = 260, 64, 8
    span = [*known, limit] if limit is not None else known
    low, high = min(span), max(span)
    room = (high - low) or abs(high) or 1.0
    root = _svg(width, height, title)

    def place(index: int, value: float) -> tuple[float, float]:
        x = pad + (width - 2 * pad) * (index / max(1, len(values) - 1) if len(values) > 1 else 0.5)
        return x, height - pad - (height - 2 * pad) * ((value - low) / room if high > low else 0.5)

    if limit is not None:
        y = place(0, limit)[1]
        _line(root, pad, y, width - pad, y, "limit")
    path, pen = [], "M"
    for index, value in enumerate(values):
        if value is None or not math.isfinite(value):
            pen = "M"
            continue
        x, y = place(index, value)
        path.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L"
    ElementTree.SubElement(root, "path", {"d": " ".join(path), "class": "trend"})
    for index, value in enumerate(values):
        if value is not None and math.isfinite(value):
            x, y = place(index, value)
            dot = ElementTree.SubElement(
                root, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "2.5", "class": "dot"}
            )
            _tooltip(dot, number(value))
    return ElementTree.tostring(root, encoding="unicode")


def scale_plot(changes: Sequence[tuple[int, float]], skipped: Sequence[int], steps: int, title: str) -> str:
    """A loss scale over the optimizer steps, in powers of two, and a mark at each step that was skipped."""
    known = [(step, math.log2(scale)) for step, scale in changes if math.isfinite(scale) and scale > 0]
    if not known or steps <= 0:
        return ""
    width, height, left, pad = 540, 150, 56, 22
    low, high = min(v for _, v in known) - 0.5, max(v for _, v in known) + 0.5
    root = _svg(width, height, title)

    def x(step: int) -> float:
        return left + (width - left - pad) * min(max(step, 0), steps) / steps

    def y(value: float) -> float:
        return height - pad - (height - 2 * pad) * (value - low) / (high - low)

    exponents = range(math.ceil(low), math.floor(high) + 1)
    for exponent in exponents[:: max(1, math.ceil(len(exponents) / 6))]:
        _line(root, left, y(exponent), width - pad, y(exponent), "grid")
        _text(root, left - 8, y(exponent) + 4, f"{2.0**exponent:g}", "tick", "end")
    for step, anchor in ((0, "start"), (steps, "end")):
        _text(root, x(step), height - 6, f"step {step}", "tick", anchor)
    # A scale holds until the next change.
    path = [f"M{x(known[0][0]):.1f} {y(known[0][1]):.1f}"]
    path += [f"H{x(step):.1f} V{y(value):.1f}" for step, value in known[1:]]
    ElementTree.SubElement(root, "path", {"d": " ".join([*path, f"H{x(steps):.1f}"]), "class": "trend"})
    for step in sorted({round(x(step)): step for step in skipped}.values()):  # one mark a pixel
        mark = _line(root, x(step), height - pad - 8, x(step), height - pad, "limit")
        _tooltip(mark, f"step {step} was skipped")
    return ElementTree.tostring(root, encoding="unicode")


def sparkline(values: Sequence[float | None]) -> str:
    """A line of block characters, lowest to highest; a space where a value is not known."""
    known = [v for v in values if v is not None and math.isfinite(v)]
    if not known:
        return ""
    low, high = min(known), max(known)

    def bar(value: float | None) -> str:
        if value is None or not math.isfinite(value):
            return " "
        return _BARS[round((value - low) / (high - low) * (len(_BARS) - 1))] if high > low else _BARS[3]

    return "".join(map(bar, values))

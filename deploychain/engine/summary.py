"""The performance summary of trtexec, TensorRT 7.0 to 11.x."""

from __future__ import annotations

import re

from deploychain.engine.model import Stat
from deploychain.engine.profiles import number

_N = r"(-?(?:nan|inf|[\d.]+(?:[eE][-+]?\d+)?))"
_ENTRY = re.compile(rf"(min|max|mean|median|percentile\(([\d.]+)%\)) = {_N} ms")
_THROUGHPUT = re.compile(rf"^\s*[Tt]hroughput: {_N} qps")
_WALLTIME = re.compile(rf"^\s*(?:Total Host Walltime|walltime): {_N} s")
_LABELS = (
    "Latency",
    "End-to-End Host Latency",
    "Enqueue Time",
    "H2D Latency",
    "GPU Compute Time",
    "D2H Latency",
)
# 7.x prints a header line and one value per line below it.
_OLD_HEADERS = {"host latency": "Latency", "gpu compute": "GPU Compute Time", "enqueue time": "Enqueue Time"}
_OLD_VALUE = re.compile(rf"^\s*(min|max|mean|median): {_N} ms")
_OLD_PERCENTILE = re.compile(rf"^\s*percentile: {_N} ms at ([\d.]+)%")
_OLD_END = re.compile(rf"\(end to end {_N} ms(?: at ([\d.]+)%)?\)")


def _finite(text: str) -> float | None:
    value = number(text)
    return value if value == value and abs(value) != float("inf") else None


class SummaryReader:
    """Collects the summary lines of one run; each `feed` is one message text."""

    def __init__(self) -> None:
        self.throughput: float | None = None
        self.walltime: float | None = None
        self._values: dict[str, dict[str, float]] = {}
        self._percentiles: dict[str, dict[float, float]] = {}
        self._old = ""

    @property
    def found(self) -> bool:
        """Whether any line of a summary was read."""
        return bool(self._values or self._percentiles) or self.throughput is not None

    def feed(self, text: str) -> bool:
        """Take a message; False where it is no summary line."""
        label, colon, rest = text.strip().partition(":")
        if colon and label in _LABELS and " = " in rest:
            self._new(label, rest)
            return True
        found = _THROUGHPUT.match(text)
        if found:
            self.throughput = _finite(found.group(1))
            return True
        found = _WALLTIME.match(text)
        if found:
            self.walltime = _finite(found.group(1))
            return True
        header = text.strip().lower()
        if not colon and header in _OLD_HEADERS:
            self._old = _OLD_HEADERS[header]
            return True
        return bool(self._old) and self._old_line(text)

    def _new(self, label: str, rest: str) -> None:
        for name, percent, value in _ENTRY.findall(rest):
            self._put(label, name, percent, value)

    def _put(self, label: str, name: str, percent: str, text: str) -> None:
        value = _finite(text)
        if value is None:
            return
        if percent:
            self._percentiles.setdefault(label, {})[number(percent)] = value
        else:
            self._values.setdefault(label, {})[name] = value

    def _old_line(self, text: str) -> bool:
        found = _OLD_VALUE.match(text)
        if found:
            self._put(self._old, found.group(1), "", found.group(2))
            end = _OLD_END.search(text)
            if end:
                self._put("End-to-End Host Latency", found.group(1), "", end.group(1))
            return True
        found = _OLD_PERCENTILE.match(text)
        if found:
            self._put(self._old, "", found.group(2), found.group(1))
            end = _OLD_END.search(text)
            if end:
                self._put("End-to-End Host Latency", "", end.group(2) or found.group(2), end.group(1))
            return True
        return False

    def stats(self) -> dict[str, Stat]:
        """Each line of the summary by its label."""
        found: dict[str, Stat] = {}
        for label in (*_LABELS,):
            values, percentiles = self._values.get(label, {}), self._percentiles.get(label, {})
            if values or percentiles:
                found[label] = Stat(
                    values.get("min"), values.get("max"), values.get("mean"), values.get("median"), percentiles
                )
        return found

"""Query times: ``--exportTimes`` JSON, TensorRT 7.0 and later."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

from deploychain.engine.layerjson import too_dense
from deploychain.engine.model import Stat, Times

_PAIR = re.compile(r'"(\w{1,40})"\s*:\s*([-+.\w]+)')


def stat(values: Sequence[float]) -> Stat:
    """Minimum, maximum, mean, median and the 90th, 95th and 99th percentile, as trtexec counts them.

    trtexec's rule: the p-th percentile of n sorted values is the one at index ``n * (100 - p) / 100`` from the top.
    """
    clean = sorted(v for v in values if math.isfinite(v))
    if not clean:
        return Stat()
    n = len(clean)
    middle = clean[n // 2] if n % 2 else (clean[n // 2 - 1] + clean[n // 2]) / 2
    tops = {float(p): clean[max(0, n - 1 - int(n * (100 - p) / 100))] for p in (90, 95, 99)}
    return Stat(clean[0], clean[-1], math.fsum(clean) / n, middle, tops)


def parse_times(text: str) -> tuple[Times | None, str | None]:
    """Read query times; a cut file gives the whole queries before the cut, and the problem in words."""
    if too_dense(text):
        return None, "not query times: far more objects than text"
    problem = None
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        rows = [dict(_PAIR.findall(part)) for part in text.split("}")[:-1]]
        problem = f"not valid JSON ({error}): the file is cut; {len(rows)} whole queries before that point"
    rows = [row for row in rows if isinstance(row, dict) and "computeMs" in row] if isinstance(rows, list) else []
    if not rows:
        return None, problem or "JSON without query times"
    keys = tuple(str(key) for key in rows[0])
    notes = []
    if "inMs" in keys and "startEnqMs" in keys:
        notes.append("TensorRT 7.1 to 7.2 swaps the Enq and In start and end values (a bug of that trtexec)")
    if "endToEndMs" in keys or "h2dMs" in keys:
        notes.append("up to TensorRT 8.4 the first queries are the warm-up")
    return (
        Times(
            len(rows),
            keys,
            stat([_number(row.get("computeMs")) for row in rows]),
            stat([_number(row.get("latencyMs")) for row in rows]),
            tuple(notes),
        ),
        problem,
    )


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan

"""The human report on a comparison of two engines."""

from __future__ import annotations

from deploychain.engine.diff import Change, EngineDiff, copies
from deploychain.engine.report import Report, Table
from deploychain.precision import Precision
from deploychain.records import LayerRecord


def build_report(diff: EngineDiff, top: int = 10) -> Report:
    """The report of ``deploychain diff``; ``top`` limits the rows of each table (0: all)."""
    blocks: list[Table | tuple[str, ...]] = [(f"A: {diff.a.headline()}", f"B: {diff.b.headline()}")]
    problems = [f"! {side} {p.path}: {p.text}" for side, e in (("A", diff.a), ("B", diff.b)) for p in e.problems]
    if problems:
        blocks.append(tuple(problems))
    if diff.reasons:
        done = "compared anyway" if diff.anyway else "not compared (--anyway compares them)"
        blocks.append((f"Times are {done}: {'; '.join(diff.reasons)}.",))
    blocks.extend(_table(diff.of_kind("precision"), "Precision changes", diff, top))
    blocks.extend(_table(diff.of_kind("fused", "split", "regrouped"), "Fusions", diff, top))
    blocks.extend(_table(diff.of_kind("only-a", "only-b"), "On one side only", diff, top))
    if diff.times_shown:
        blocks.extend(_slower(diff, top))
    blocks.append(_copies(diff))
    return Report(diff.headline(), tuple(blocks))


def _word(precision: Precision | None) -> str:
    return precision.value.upper() if precision else "?"


def _words(layers: tuple[LayerRecord, ...]) -> str:
    return "+".join(dict.fromkeys(_word(layer.compute) for layer in layers)) or "-"


def _label(change: Change) -> str:
    if change.nodes:
        text = ", ".join(change.nodes[:4])
        return f"{text}, ... ({len(change.nodes)} nodes)" if len(change.nodes) > 4 else text
    return (change.a or change.b)[0].name[:160]


def _share(value: float | None) -> str:
    return "" if value is None else f"{value * 100:.1f} %"


def _table(changes: tuple[Change, ...], title: str, diff: EngineDiff, top: int) -> list[Table]:
    if not changes:
        return []
    ordered = sorted(changes, key=lambda c: -max(c.share_a or 0.0, c.share_b or 0.0))
    shown = ordered[:top] if top else ordered
    rows = tuple(
        (
            change.kind,
            _label(change),
            f"{len(change.a)} {_words(change.a)}",
            f"{len(change.b)} {_words(change.b)}",
            _share(change.share_a),
            _share(change.share_b),
        )
        for change in shown
    )
    title = title if len(shown) == len(changes) else f"{title} ({len(shown)} of {len(changes)})"
    return [
        Table(
            title, ("Change", "ONNX nodes", "A", "B", "Share A", "Share B"), rows, ("Share A", "Share B"), "ONNX nodes"
        )
    ]


def _slower(diff: EngineDiff, top: int) -> list[Table]:
    rows = []
    for change in diff.changes:
        a = sum(layer.time_ms or 0.0 for layer in change.a)
        b = sum(layer.time_ms or 0.0 for layer in change.b)
        if a != b:
            rows.append((abs(b - a), _label(change), a, b))
    rows.sort(key=lambda row: -row[0])
    shown = rows[:top] if top else rows
    cells = tuple((label, f"{a:.4g}", f"{b:.4g}", f"{b - a:+.4g}") for _, label, a, b in shown)
    columns = ("ONNX nodes", "A ms", "B ms", "Change")
    return [Table("Time by nodes", columns, cells, columns[1:], "ONNX nodes")] if cells else []


def _copies(diff: EngineDiff) -> tuple[str, ...]:
    (n, time_a, share_a), (m, time_b, share_b) = copies(diff.a), copies(diff.b)
    text = f"Reformats and casts: {n} in A, {m} in B"
    if share_a is not None and share_b is not None:
        text += f"; {_share(share_a)} and {_share(share_b)} of the layer time"
    if diff.times_shown and time_a is not None and time_b is not None:
        text += f"; {time_a:.4g} and {time_b:.4g} ms"
    return (text + ".",)

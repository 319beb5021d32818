"""The human report on evidence: headline first, then problems, fallbacks with cause and remedy, cost, run, options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from deploychain.engine.advice import Advice, advise, context_of
from deploychain.engine.evidence import Evidence
from deploychain.engine.model import Run, Stat
from deploychain.engine.render import arithmetic, top_rows
from deploychain.precision import Precision
from deploychain.records import LayerKind, LayerRecord, LayerVerdict

_BAD = (LayerVerdict.FALLBACK, LayerVerdict.DEMOTED, LayerVerdict.POSSIBLE, LayerVerdict.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Table:
    """One table for `console.table`."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[str, ...] = ()
    ratio: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What to print, in order: the headline, then blocks of lines and tables."""

    headline: str
    blocks: tuple[Table | tuple[str, ...], ...] = field(default=())


def build_report(evidence: Evidence, top: int = 10) -> Report:
    """The report of ``deploychain layers``; ``top`` limits the rows of each table (0: all)."""
    blocks: list[Table | tuple[str, ...]] = []
    if evidence.problems:
        blocks.append(tuple(f"! {p.path + ': ' if p.path else ''}{p.text}" for p in evidence.problems))
    blocks.extend(_judged(evidence, top))
    blocks.extend(_slowest(evidence, top))
    copies = _copies(evidence)
    if copies:
        blocks.append(copies)
    many = len(evidence.runs) > 12
    if many:
        blocks.append((f"{len(evidence.runs)} runs; shown: those that did not pass, and the last (--json has all).",))
    for number, run in enumerate(evidence.runs, 1):
        if many and run.status == "passed" and number < len(evidence.runs):
            continue
        if not run.tool and not run.stats and not run.warnings and run.throughput_qps is None and not run.dla_layers:
            continue  # a listing of layers alone: nothing is known about the run
        blocks.extend(_run(run, number, len(evidence.runs)))
    blocks.extend(_times(evidence))
    if evidence.notes:
        blocks.append(tuple(f"- {note}" for note in evidence.notes))
    return Report(evidence.headline(), tuple(blocks))


def _cut(rows: list[tuple[str, ...]], top: int, title: str) -> tuple[str, tuple[tuple[str, ...], ...]]:
    if top and len(rows) > top:
        return f"{title} (worst {top} of {len(rows)})", tuple(rows[:top])
    return title, tuple(rows)


def _ms(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.4g}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value * 100:.1f} %"


def _precision(value: Precision | None) -> str:
    return value.value.upper() if value else "?"


def _cost(layer: LayerRecord) -> float:
    return -(layer.share if layer.share is not None else layer.time_ms or 0.0)


def _judged(evidence: Evidence, top: int) -> list[Table | tuple[str, ...]]:
    # Worst first: by certainty, then by time.
    layers = [layer for layer in arithmetic(evidence.layers) if layer.verdict in _BAD]
    layers.sort(key=lambda layer: (_BAD.index(layer.verdict), _cost(layer)))
    if not layers or evidence.asked is None:
        return []
    strong = any(run.strongly_typed for run in evidence.runs)
    context = context_of(evidence.layers, evidence.asked, evidence.run, strong)
    numbers: dict[Advice, int] = {}
    rows: list[tuple[str, ...]] = []
    for layer in layers:
        mark = ""
        if layer.verdict is not LayerVerdict.UNKNOWN:
            mark = f"[{numbers.setdefault(advise(layer, context), len(numbers) + 1)}]"
        rows.append(
            (
                layer.verdict.value,
                _label(layer),
                _precision(layer.asked or evidence.asked),
                _built(layer),
                _ms(layer.time_ms),
                _percent(layer.share),
                mark,
            )
        )
    title, shown = _cut(rows, top, "Not as asked")
    columns: tuple[str, ...] = ("Verdict", "Layer", "Asked", "Built", "ms", "Share", "Why")
    if all(layer.time_ms is None for layer in layers):
        columns = (*columns[:4], columns[6])
        shown = tuple((*row[:4], row[6]) for row in shown)
    table = Table(title, columns, shown, right=("ms", "Share"), ratio="Layer")
    used = {row[-1] for row in shown}
    reasons = tuple(
        f"[{number}] Probable cause: {advice.cause}. Remedy: {advice.remedy}."
        for advice, number in numbers.items()
        if f"[{number}]" in used
    )
    return [table, reasons] if reasons else [table]


def _label(layer: LayerRecord) -> str:
    name = layer.name if len(layer.name) <= 160 else layer.name[:157] + "..."
    return f"{name} ({layer.module})" if layer.module else name


def _built(layer: LayerRecord) -> str:
    if layer.compute is not None:
        return _precision(layer.compute)
    sides = [
        "/".join(dict.fromkeys(_precision(t.dtype) for t in tensors if t.dtype is None or not t.dtype.is_index)) or "-"
        for tensors in (layer.inputs, layer.outputs)
    ]
    return f"{sides[0]} > {sides[1]}"


def _slowest(evidence: Evidence, top: int) -> list[Table | tuple[str, ...]]:
    timed = [layer for layer in evidence.layers if layer.time_ms]
    if not timed and evidence.profile is not None and not evidence.layers:
        slow = [
            (row["name"], _ms(row["mean_ms"]), _percent(row["share"]))
            for row in top_rows(evidence.profile, top or evidence.profile.rows)
        ]
        title = f"Slowest rows of the profile ({len(slow)} of {evidence.profile.rows})"
        return [Table(title, ("Layer", "ms", "Share"), tuple(slow), ("ms", "Share"), "Layer")]
    if not timed:
        return []
    timed.sort(key=_cost)
    rows = [
        (_label(layer), layer.layer_type, _built(layer), layer.verdict.value, _ms(layer.time_ms), _percent(layer.share))
        for layer in timed
    ]
    title = "Slowest layers" + (f" ({top} of {len(rows)})" if top and len(rows) > top else "")
    shown = tuple(rows[:top] if top else rows)
    return [Table(title, ("Layer", "Type", "Built", "Verdict", "ms", "Share"), shown, ("ms", "Share"), "Layer")]


def _copies(evidence: Evidence) -> tuple[str, ...]:
    copies = [layer for layer in evidence.layers if layer.kind is LayerKind.COPY]
    if not copies:
        return ()
    quantise = [layer for layer in copies if layer.origin == "QDQ"]
    rest = [layer for layer in copies if layer.origin != "QDQ"]
    convert = [layer for layer in rest if _types(layer.inputs) != _types(layer.outputs)]
    move = [layer for layer in rest if _types(layer.inputs) == _types(layer.outputs)]
    parts = [
        f"{len(group)} {what}{_total(group)}"
        for group, what in (
            (convert, "convert the type"),
            (move, "change the layout only"),
            (quantise, "are the model's own quantise and dequantise nodes"),
        )
        if group
    ]
    return (f"Reformats and casts: {len(copies)}{_total(copies)}: {', '.join(parts)}.",)


def _types(tensors: Sequence[object]) -> set[object]:
    return {getattr(t, "dtype", None) for t in tensors}


def _total(layers: Sequence[LayerRecord]) -> str:
    times = [layer.time_ms for layer in layers if layer.time_ms is not None]
    if not times:
        return ""
    share = sum(layer.share or 0.0 for layer in layers)
    return f" ({sum(times):.4g} ms, {share * 100:.1f} %)"


def _run(run: Run, number: int, count: int) -> list[Table | tuple[str, ...]]:
    lines: list[str] = []
    title = f"Run {number} of {count}" if count > 1 else "Run"
    facts: list[str] = [run.status]
    if run.tensorrt:
        facts.append(f"TensorRT {run.tensorrt}")
    if run.device:
        facts.append(run.device)
    if run.throughput_qps is not None:
        facts.append(f"{run.throughput_qps:g} queries/s")
    lines.append(f"{title}: {', '.join(facts)}")
    lines.extend(_options(run))
    if run.dla_layers or run.gpu_layers:
        lines.append(f"  DLA: {len(run.dla_layers)} subgraphs or layers; GPU: {len(run.gpu_layers)} layers")
    lines.extend(_facts(run.facts))
    worth = [w for w in run.warnings if w.kind != "other"]
    worth.sort(key=lambda w: not w.serious)
    for warned in worth[:12]:
        times = f" ({warned.count})" if warned.count > 1 else ""
        where = f" `{warned.layer[:80]}`" if warned.layer else ""
        meaning = f": {warned.meaning}" if warned.meaning else ""
        lines.append(f"  {'!' if warned.serious else '-'} {warned.kind}{times}{where}{meaning} | {warned.text[:200]}")
    blocks: list[Table | tuple[str, ...]] = [tuple(lines)]
    rows = tuple(
        (label, *(_ms(v) for v in (stat.min, stat.mean, stat.median, stat.p99, stat.max)))
        for label, stat in run.stats.items()
    )
    if rows:
        columns = ("Milliseconds", "min", "mean", "median", "p99", "max")
        blocks.append(Table("", columns, rows, columns[1:]))
    return blocks


_OPTIONS = (
    (
        "built with",
        *("Precision", "LayerPrecisions", "LayerOutputTypes", "Layer Device Types", "Calibration", "Sparsity"),
        *("Memory Pools", "Workspace", "Profiling verbosity", "BuilderOptimizationLevel", "DLACore"),
        *("Input build shapes", "Input(s)s format", "Load engine"),
    ),
    (
        "run with",
        *("Batch", "Max batch", "Input inference shapes", "Input inference shape", "Inference Streams", "Streams"),
        *("Data transfers", "Spin-wait", "CUDA Graph", "Separate profiling", "Multithreading"),
    ),
)
_DEFAULTS = frozenset(("", "model", "-1", "None"))


def _options(run: Run) -> list[str]:
    """The options that bear on precision and time, as printed; what they mean in this version stands in the notes."""
    flat = {key: value for section in run.options.values() for key, value in section.items()}
    lines = []
    for title, *keys in _OPTIONS:
        skip = _DEFAULTS if title == "run with" else _DEFAULTS | {"Disabled"}
        found = [f"{key}: {flat[key][:80]}" for key in keys if flat.get(key, "") not in skip]
        if found:
            lines.append(f"  {title} {'; '.join(found)}")
    return lines


def _facts(facts: object) -> list[str]:
    """What `polygraphy debug precision` found out."""
    if not isinstance(facts, dict) or not facts:
        return []
    lines = []
    answer = facts.get("answer")
    if isinstance(answer, dict):
        higher = facts.get("higher_precision", "a higher precision")
        lines.append(f"  debug precision: acceptable with the {answer['which']} {answer['layers']} layers in {higher}")
    elif facts.get("failed"):
        lines.append("  debug precision: no configuration was accurate enough")
    tried = facts.get("tried")
    if isinstance(tried, list):
        lines.append(f"  {len(tried)} iterations, {sum(bool(t['passed']) for t in tried)} passed")
    return lines


def _times(evidence: Evidence) -> list[Table | tuple[str, ...]]:
    blocks: list[Table | tuple[str, ...]] = []
    for reading in evidence.inputs:
        if reading.times is not None:
            lines = [f"{reading.path}: {reading.times.queries} queries"]
            lines += [
                f"  {word}: {_line(stat)}"
                for word, stat in (("GPU", reading.times.gpu), ("latency", reading.times.latency))
            ]
            blocks.append(tuple(lines))
        if reading.facts and reading.kind.startswith("polygraphy"):
            blocks.append(tuple(_polygraphy(reading.path, reading.facts)))
    return blocks


def _line(stat: Stat) -> str:
    return f"mean {_ms(stat.mean)} ms, median {_ms(stat.median)} ms, p99 {_ms(stat.p99)} ms"


def _polygraphy(path: str, facts: object) -> list[str]:
    lines = [f"{path}:"]
    if isinstance(facts, dict):
        for runner in facts.get("runners", []):
            mean = (runner.get("runtime_ms") or {}).get("mean")
            lines.append(f"  {runner['name']}: {runner['iterations']} iterations, mean {_ms(mean)} ms (host time)")
        for pair in facts.get("pairs", []):
            lines.append(f"  {' against '.join(pair['runners'])}:")
            for output in pair["outputs"][:20]:
                word = {True: "passed", False: "FAILED", None: "no verdict"}[output["passed"]]
                error = output.get("max_absdiff")
                lines.append(
                    f"    {output['output']}: {word}{f', max abs error {error:.4g}' if error is not None else ''}"
                )
    return lines

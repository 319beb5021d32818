"""The table at the end of a run: one line per artefact, then what is wrong with the built layers.

Everything printed was measured by the stages; nothing is computed here but shares of counted layers.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deploychain import console
from deploychain.records import (
    Comparison,
    EngineReport,
    EvalReport,
    LayerKind,
    LayerRecord,
    LayerVerdict,
    load_comparison,
)
from deploychain.report.text import agreement

if TYPE_CHECKING:
    from deploychain.outcome import RunResult, StageRow

# Which evaluation belongs to which artefact; the checkpoint has two.
_EVALUATED = {
    "checkpoint": ("train-fp32", "train-amp"),
    "weights": ("weights",),
    "qat-weights": ("qat",),
    "onnx-fp32": ("onnx-fp32",),
    "onnx-fp16": ("onnx-fp16",),
    "onnx-int8": ("onnx-int8",),
    "engine-fp32": ("engine-fp32",),
    "engine-fp16": ("engine-fp16",),
    "engine-int8": ("engine-int8",),
}
# Artefacts beside the models, shown only where the stage made no model.
_SHOWN = (*_EVALUATED, "onnx-qat", "eval-reports", "comparison")
_PROBLEMS = (LayerVerdict.DEMOTED, LayerVerdict.FALLBACK, LayerVerdict.UNKNOWN, LayerVerdict.POSSIBLE)
_COUNTED = (LayerKind.COMPUTE, LayerKind.OPAQUE)  # what LayerSummary counts
_NAME = 40  # characters of a layer's name
_MOST = 8  # layers and problems listed per engine


def print_preview(result: RunResult) -> None:
    """What a run would do: a line per stage."""
    console.table(
        ("Stage", "Status", "Why"), [(row.name, row.status, row.reason) for row in result.stages], ratio="Why"
    )
    console.out(f"run folder: {result.run_dir}")


def print_run(result: RunResult) -> None:
    """What a run made and measured."""
    compared = next(
        (r for r in result.stages if r.name == "compare" and r.record and r.status in ("ran", "cached")), None
    )
    comparison = None
    if compared is not None and compared.record is not None:
        comparison = load_comparison(compared.record.by_kind()["comparison"].path)
    print_comparison(comparison, result.stages, result.run_dir)


def print_comparison(comparison: Comparison | None, stages: Sequence[StageRow], run_dir: Path) -> None:
    """Print the table, the rows that did not run, the layer problems and the run folder.

    Args:
        comparison: None where the chain ended before compare.
        stages: the rows of the run, each with its seconds and artefacts.
    """
    evals = {e.stage: e for e in comparison.evals} if comparison else {}
    engines = {e.name: e for e in comparison.engines} if comparison else {}
    metric = _main_metric(comparison)
    lines: list[tuple[str, ...]] = []
    styles: dict[int, str] = {}
    for stage in stages:
        for index, (artefact, report, engine) in enumerate(_entries(stage, evals, engines)):
            if report is not None and (report.non_finite or any(v is None for v in report.metrics.values())):
                styles[len(lines)] = "bold red"
            head = (stage.name, _time(stage)) if index == 0 else ("", "")
            lines.append((*head, artefact, *_measured(report, metric), *_share(engine)))
    columns = ("Stage", "Time", "Artefact", metric or "Metric", "Agree", "Max error", "SNR dB", "As asked", "Off")
    console.table(columns, lines, right=columns[3:], styles=styles, ratio="Artefact")
    if any(stage.status == "cached" for stage in stages):
        _out("(Time): cached, and how long it took when it ran.")
    if engines:
        _out("As asked: layers in the precision asked for, of all that compute. Off: in another one. ?: unknown.")
    if comparison is not None:
        _print_how(comparison)
        for engine in comparison.engines:
            _print_engine(engine)
        for note in comparison.notes:
            _out(note)
    console.out(f"run folder: {run_dir}")


def _entries(
    stage: StageRow, evals: Mapping[str, EvalReport], engines: Mapping[str, EngineReport]
) -> Iterable[tuple[str, EvalReport | None, EngineReport | None]]:
    """(artefact text, its evaluation, its engine) per line of a stage; at least one."""
    kinds = stage.record.by_kind() if stage.record is not None and stage.status in ("ran", "cached") else {}
    shown = [kind for kind in _SHOWN if kind in kinds]
    if not shown:
        yield (
            next((a.path.name for a in kinds.values()), f"({stage.status}: {stage.reason})" if not kinds else ""),
            None,
            None,
        )
    for kind in shown:
        rows = _EVALUATED.get(kind, ())
        name = kinds[kind].path.name
        engine = engines.get(kind.removeprefix("engine-")) if kind.startswith("engine-") else None
        if not rows:
            yield name, None, None
        for index, row in enumerate(rows):
            yield (name if index == 0 else "  under autocast"), evals.get(row), engine
    if stage.name == "build":
        for name, engine in engines.items():
            if not engine.built:
                yield f"{name}: not built", evals.get(f"engine-{name}"), engine


def _main_metric(comparison: Comparison | None) -> str:
    """The first metric of the reference (the task names its main one first)."""
    for report in comparison.evals if comparison else ():
        if report.ran and report.metrics:
            return next(iter(report.metrics))
    return ""


def _measured(report: EvalReport | None, metric: str) -> tuple[str, str, str, str]:
    """Metric, agreement, largest error and SNR of one evaluation, as printed."""
    if report is None:
        return ("", "", "", "")
    if not report.ran:
        return ("not run", "", "", "")
    value = report.metrics.get(metric)
    score = f"{value:.4f}" if value is not None else ("unknown" if metric else "")
    if report.stage == report.reference:
        return (score, "reference", "", "")
    agree = agreement(report)
    if report.exact:
        return (score, agree, "equal", "")
    if report.max_abs_error is None:
        error = f"{report.non_finite} not finite" if report.non_finite else "unknown"
    else:
        error = f"{report.max_abs_error:.2g}"
    return (score, agree, error, "" if report.snr_db is None else f"{report.snr_db:.1f}")


def _share(engine: EngineReport | None) -> tuple[str, str]:
    """Layers as asked of all that compute, and those that certainly (and "?": perhaps) are not."""
    if engine is None or not engine.built:
        return ("", "")
    found = engine.summary
    if found is None:
        return ("unknown", "?")
    unknown = found.unknown + found.possible
    off = found.fallback + found.demoted
    return (f"{found.as_asked} of {found.total}", f"{off} +{unknown}?" if unknown else str(off))


def _counts(engine: EngineReport) -> str:
    """The same in a sentence, with what else was counted."""
    found = engine.summary
    if found is None:
        return "nothing is known of the precision of its layers"
    parts = [f"{found.as_asked} of {found.total} layers in the precision asked for"]
    parts += [
        f"{count} {what}"
        for count, what in (
            (found.demoted, "lower than asked"),
            (found.fallback, "higher than asked"),
            (found.unknown + found.possible, "unknown"),
            (found.copies, "reformats and casts"),
        )
        if count
    ]
    return ", ".join(parts)


def _time(stage: StageRow) -> str:
    if stage.seconds is None:
        return stage.status
    return f"({stage.seconds:.1f} s)" if stage.status == "cached" else f"{stage.seconds:.1f} s"


def _print_how(comparison: Comparison) -> None:
    """How each number came about; rows that share it are told together."""
    ran: dict[str, list[str]] = {}
    missed: dict[str, list[str]] = {}
    for report in comparison.evals:
        (ran if report.ran else missed).setdefault(report.how if report.ran else report.reason, []).append(report.stage)
    reference = next((e.reference for e in comparison.evals if e.ran), "")
    _out(f"errors against {reference}, {comparison.provenance.samples} test samples")
    for how, names in ran.items():
        _out(f"{', '.join(names)}: {how}", indent=2)
    for reason, names in missed.items():
        _out(f"{', '.join(names)} not run: {reason}", indent=2)
    noted: dict[str, list[str]] = {}
    for report in comparison.evals:
        for note in report.notes:
            noted.setdefault(note, []).append(report.stage)
    for note, names in noted.items():
        _out(f"{', '.join(names)}: {note}", indent=2)


def _print_engine(engine: EngineReport) -> None:
    """The layers of one engine that are not, or not provably, in the precision asked for."""
    if not engine.built:
        return  # told among the rows that did not run
    counted = [x for x in engine.layers if x.kind in _COUNTED]
    layers = [x for x in counted if x.verdict in _PROBLEMS]
    _out(f"engine {engine.name}: {_counts(engine)}")
    exempt = Counter(x.reason for x in counted if x.verdict is LayerVerdict.EXPECTED)
    for reason, count in exempt.most_common(3):
        _out(f"{count} as expected: {reason}", indent=2)
    layers.sort(key=lambda x: _PROBLEMS.index(x.verdict))
    if layers:
        rows = [
            (x.verdict.value, _where(x), f"{x.asked or '?'} -> {x.compute or '?'}", x.reason) for x in layers[:_MOST]
        ]
        console.table(("Verdict", "Layer", "Asked, built", "Why"), rows, ratio="Why")
    if len(layers) > _MOST:
        _out(f"and {len(layers) - _MOST} more layers in comparison.json", indent=2)
    for problem in engine.problems[:_MOST]:
        _out(problem, indent=2)
    if len(engine.problems) > _MOST:
        _out(f"and {len(engine.problems) - _MOST} more problems in comparison.json", indent=2)


def _where(layer: LayerRecord) -> str:
    """A layer by its first ONNX node (the end of a long name says more), else by the builder's name."""
    name = layer.onnx_nodes[0] if layer.onnx_nodes else layer.name
    short = name if len(name) <= _NAME else "…" + name[1 - _NAME :]
    return f"{short} +{len(layer.onnx_nodes) - 1}" if len(layer.onnx_nodes) > 1 else short


def _out(text: str, indent: int = 0) -> None:
    """A line of prose, wrapped to the width of the tables."""
    margin = " " * indent
    for line in textwrap.wrap(text, console.WIDTH, initial_indent=margin, subsequent_indent=margin + "  "):
        console.out(line)

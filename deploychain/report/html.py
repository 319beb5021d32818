"""The report: one self-contained HTML file. No script, no network, every name escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from deploychain.records import Comparison, EngineReport, EvalReport, LayerRecord, LayerVerdict, Training
from deploychain.report.markdown import sentence
from deploychain.report.plots import Dot, Tone, dot_plot, line_plot, scale_plot, stacked_bar
from deploychain.report.text import number, shorten, visible
from deploychain.verdicts import Check, Entry, GateResult, Status

MAX_LAYERS = 2000  # rows a table; the count of what was left out is printed
MAX_FINDINGS = 1000  # the same; a finding takes about 1 kB

# How layers are sorted in the table, and from right to left in the bar.
_ORDER = {v: i for i, v in enumerate(("fallback", "unknown", "possible", "demoted", "expected", "as-asked"))}
_TONES: Mapping[Status, Tone] = {
    Status.PASS: "good",
    Status.FAIL: "bad",
    Status.INCONCLUSIVE: "warn",
    Status.INCOMPLETE: "warn",
    Status.NOT_COMPARABLE: "warn",
}


@dataclass(frozen=True, slots=True)
class _Engine:
    report: EngineReport
    counts: Mapping[str, int]
    bar: Markup
    layers: Sequence[LayerRecord]
    left_out: int


def _finalize(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_finalize,
    )
    environment.filters.update(number=number, shorten=shorten, percent=_percent, scientific=_scientific)
    return environment


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f} %"


def _scientific(value: float | None) -> str:
    return "–" if value is None else "0" if value == 0 else f"{value:.2e}"


def render(
    comparison: Comparison | None,
    gate_result: GateResult | None = None,
    *,
    history: Sequence[Entry] = (),
    title: str = "",
) -> str:
    """The page as text.

    Args:
        comparison: what was measured; None where it could not be read (the gate result says why).
        gate_result: the judgement, if there is one; fallbacks and findings come first.
        history: accepted baselines to plot; default: those of the gate result.
        title: default: the pipeline's name.
    """
    evals = comparison.evals if comparison is not None else ()
    checks = gate_result.checks if gate_result is not None else ()
    accepted = history or (gate_result.history if gate_result is not None else ())
    metrics = sorted({name for report in evals for name in report.metrics})
    return (
        _environment()
        .get_template("report.html")
        .render(
            title=title or (comparison.provenance.pipeline if comparison is not None else "") or "deploychain",
            comparison=comparison,
            evals=evals,
            metrics=metrics,
            deltas=_deltas(evals),
            result=gate_result,
            sentence=sentence(gate_result.verdict) if gate_result is not None else "",
            passes=[c for c in checks if c.status is Status.PASS],
            findings=gate_result.findings if gate_result is not None else (),
            max_findings=MAX_FINDINGS,
            metric_plots=[(m, Markup(_metric_plot(evals, checks, m))) for m in metrics],
            error_plot=Markup(_error_plot(evals)),
            latency_plot=Markup(_latency_plot(comparison, checks)) if comparison is not None else "",
            training=comparison.training if comparison is not None else None,
            scale_plot=Markup(_scale_plot(comparison.training if comparison is not None else None)),
            engines=[_engine(e) for e in comparison.engines] if comparison is not None else [],
            trends=_trends(accepted),
            accepted=accepted,
        )
    )


def _deltas(evals: Sequence[EvalReport]) -> dict[tuple[str, str], float]:
    """(stage, metric) -> difference from the stage that it is measured against."""
    by_name = {report.stage: report for report in evals}
    made = {}
    for report in evals:
        parent = by_name.get(report.reference)
        if parent is None or parent is report:
            continue
        for name, value in report.metrics.items():
            reference = parent.metrics.get(name)
            if value is not None and reference is not None:
                made[report.stage, name] = value - reference
    return made


def _metric_plot(evals: Sequence[EvalReport], checks: Sequence[Check], metric: str) -> str:
    kept = {c.stage: c for c in checks if c.metric == metric and c.kind == "retention"}
    rows = []
    for report in evals:
        if metric not in report.metrics and report.ran:
            continue
        check, value = kept.get(report.stage), report.metrics.get(metric) if report.ran else None
        low = high = limit = reference = None
        if check is not None and check.baseline is not None:
            # The check bounds the loss in per cent of the parent: where the true value may lie.
            reference = check.baseline
            limit = reference * check.limit / 100 if check.limit is not None else None
            if check.low is not None and check.high is not None:
                low, high = reference * (1 - check.high / 100), reference * (1 - check.low / 100)
        tone = _TONES.get(check.status, "plain") if check is not None else "plain"
        note = "not a number" if report.ran else "did not run"
        rows.append(Dot(report.stage, value, low, high, limit, reference, tone=tone, note=note))
    return dot_plot(rows, f"{metric} by stage", unit=metric)


def _error_plot(evals: Sequence[EvalReport]) -> str:
    rows = [
        Dot(
            report.stage,
            report.relative_error,
            tone="bad" if report.non_finite else "plain",
            note="bit-equal" if report.exact or report.relative_error == 0 else "not measured",
        )
        for report in evals
        if report.ran and report.reference and report.reference != report.stage
    ]
    return dot_plot(rows, "relative error by stage", unit="||out - ref|| / ||ref||", log=True)


def _latency_plot(comparison: Comparison, checks: Sequence[Check]) -> str:
    judged = {(c.stage, c.value): c for c in checks if c.kind == "latency" and c.baseline is not None}
    devices = len({latency.device for latency in comparison.latency})
    rows = []
    for latency in comparison.latency:
        check = judged.get((latency.stage, latency.p50_ms))
        tone = _TONES.get(check.status, "plain") if check is not None else "plain"
        reference = check.baseline if check is not None else None
        name = f"{latency.stage}, {latency.device}" if devices > 1 else latency.stage
        points = latency.repeats or latency.parts
        rows.append(Dot(name, latency.p50_ms, reference=reference, points=points, tone=tone))
    return dot_plot(rows, "latency by stage", unit="ms, p50")


def _scale_plot(training: Training | None) -> str:
    if training is None:
        return ""
    return scale_plot(training.scale_history, training.skipped, training.steps, "loss scale by step")


def _engine(engine: EngineReport) -> _Engine:
    judged = [layer for layer in engine.layers if layer.kind.value in ("compute", "opaque")]
    counts = {v.value: sum(layer.verdict is v for layer in judged) for v in LayerVerdict}
    ordered = sorted(judged, key=lambda x: (_ORDER.get(x.verdict.value, 9), -(x.share or 0.0), x.name))
    rest = [layer for layer in engine.layers if layer.kind.value == "copy"]
    parts = [
        (name, counts.get(name, 0)) for name in ("as-asked", "expected", "demoted", "possible", "unknown", "fallback")
    ]
    bar = Markup(stacked_bar(parts, f"layers of engine {engine.name}"))
    layers = [*ordered, *rest]
    return _Engine(engine, counts, bar, layers[:MAX_LAYERS], max(0, len(layers) - MAX_LAYERS))


def _trends(history: Sequence[Entry]) -> list[tuple[str, Markup, float | None, float | None]]:
    """(name, plot, first, last) of every value that changed over the accepted baselines."""
    names = sorted({name for entry in history for name in entry.values})
    made: list[tuple[str, Markup, float | None, float | None]] = []
    for name in names:
        values = [entry.values.get(name) for entry in history]
        known = [v for v in values if v is not None]
        if len(set(known)) > 1:
            plot = Markup(line_plot(values, name))
            made.append((name, plot, known[0], known[-1]))
    return made

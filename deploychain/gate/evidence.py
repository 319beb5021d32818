"""What must be there, and must not contradict itself, before anything can be judged. It looks at no limit's number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from deploychain.gate.baseline import Baseline, BaselineStage, arithmetic
from deploychain.gate.context import Context, literal, matches
from deploychain.gate.engines import stage_of
from deploychain.records import Comparison, EngineReport, EvalReport, LayerVerdict
from deploychain.verdicts import Check, Status

_MANY = 1 << 53  # above this a count is no exact float, and no test set either


def judge_evidence(context: Context) -> Iterator[Check]:
    """Every gap and contradiction of the comparison, in itself and against the baseline."""
    comparison = context.comparison
    if not comparison.evals and not comparison.engines:
        yield _gap("", "the comparison is empty")
    yield from _named_twice(comparison)
    evals = {report.stage: report for report in comparison.evals}
    for report in comparison.evals:
        if not report.ran:
            yield _gap(report.stage, f"{report.stage} did not run: {report.reason or 'no reason given'}")
            continue
        parent = evals.get(report.reference)
        yield from _finite(context, report, parent)
        yield from _complete(context, report, parent if parent is not None and parent.ran else None)
        yield from _series(report, parent)
        yield from _exact(report)
    yield from _engines(context)
    yield from _gone(context, evals)
    yield from _required(context, evals)


def _gap(stage: str, message: str, kind: str = "missing", metric: str = "") -> Check:
    return Check(stage, kind, Status.INCOMPLETE, message, metric)


def _named_twice(comparison: Comparison) -> Iterator[Check]:
    """Two measurements of one name: one of them would hide the other."""
    names = (
        *((report.stage, report.stage) for report in comparison.evals),
        *((stage_of(engine.name), f"engine {engine.name}") for engine in comparison.engines),
        *((x.stage, f"the latency of {x.stage} on {x.device or 'an unnamed device'}") for x in comparison.latency),
    )
    for (stage, name), count in Counter(names).items():
        if count > 1:
            yield _gap(stage, f"{name} is in the comparison {count} times, and nothing says which of them counts")


def _finite(context: Context, report: EvalReport, parent: EvalReport | None) -> Iterator[Check]:
    if report.non_finite:
        worse = parent is None or parent.stage == report.stage or not parent.non_finite
        yield Check(
            report.stage,
            "non-finite",
            Status.FAIL if worse else Status.INCOMPLETE,
            f"{report.non_finite} values in the outputs of {report.stage} are NaN or infinite",
            value=float(min(report.non_finite, _MANY)),
            limit=0.0,
            look=f"deploychain report {context.run}",
        )


def _complete(context: Context, report: EvalReport, parent: EvalReport | None) -> Iterator[Check]:
    """Metrics and samples."""
    stage = report.stage
    if not report.metrics:
        yield _gap(stage, f"{stage} has no metric")
    else:
        for name in sorted(parent.metrics.keys() - report.metrics.keys()) if parent is not None else ():
            yield _gap(
                stage, f"{name} of {stage} was not measured, and its parent {report.reference} has it", metric=name
            )
    expected = context.comparison.provenance.samples
    if not 0 < report.samples < _MANY or (expected is not None and report.samples != expected):
        total = expected if expected is not None and expected < _MANY else "?"
        yield Check(
            stage,
            "samples",
            Status.INCOMPLETE,
            f"{stage} was measured on {report.samples if report.samples < _MANY else '?'} of {total} samples",
            value=float(min(report.samples, _MANY)),
            limit=float(min(expected, _MANY)) if expected is not None else None,
        )


def _series(report: EvalReport, parent: EvalReport | None) -> Iterator[Check]:
    """Values and classes by sample that are cut, hold a NaN, or are not those of the parent's samples.

    Without them the number alone would be judged, and noise that was measured would be forgotten.
    """
    stage, labels = report.stage, report.sample_classes
    for name, values in sorted(report.per_sample.items()):
        if len(values) != report.samples:
            what = f"{stage} has {len(values)} values of {name} for {report.samples} samples"
            yield _gap(stage, what, "samples", name)
        elif any(v is None or not math.isfinite(v) for v in values) and _known(report.metrics.get(name)):
            yield _gap(stage, f"{name} of {stage} is a number, and that of single samples is not", "non-finite", name)
    if labels and len(labels) != report.samples:
        yield _gap(
            stage, f"{stage} has the classes of {len(labels)} samples, measured were {report.samples}", "samples"
        )
    elif labels and parent is not None and parent.sample_classes and labels != parent.sample_classes:
        yield _gap(stage, f"the samples of {stage} have other classes than those of {report.reference}", "samples")


def _exact(report: EvalReport) -> Iterator[Check]:
    """Outputs that are called bit-equal, with an error: equal outputs are judged as certain."""
    errors = (report.max_abs_error, report.mean_abs_error, report.relative_error)
    if report.exact and (any(errors) or report.agreement not in (None, 1.0)):
        yield _gap(
            report.stage, f"the outputs of {report.stage} are called bit-equal to {report.reference}, and differ"
        )


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _engines(context: Context) -> Iterator[Check]:
    for engine in context.comparison.engines:
        if not engine.built:
            reason = engine.reason or "no reason given"
            yield _gap(stage_of(engine.name), f"engine {engine.name} was not built: {reason}")
        elif context.limits.layers:
            for what in _layer_contradictions(context, engine):
                yield _gap(stage_of(engine.name), f"engine {engine.name} {what}")
    reported = {stage_of(engine.name) for engine in context.comparison.engines}
    for report in context.comparison.evals if context.limits.layers else ():
        if report.ran and report.stage.startswith("engine-") and report.stage not in reported:
            yield _gap(report.stage, f"{report.stage} ran, and nothing is known of its layers")


def _layer_contradictions(context: Context, engine: EngineReport) -> Iterator[str]:
    """What the layers of an engine leave out or deny of themselves. Other tools write comparisons too."""
    if not engine.complete:
        yield "has a listing of layers that is cut or was not read whole"
    summary, judged = engine.summary, arithmetic(engine)
    if summary is not None and engine.layers:
        told = {v: sum(layer.verdict is v for layer in judged) for v in LayerVerdict}
        counts = (
            ("layers", summary.layers, len(engine.layers)),
            ("fallbacks", summary.fallback, told[LayerVerdict.FALLBACK]),
            ("opaque layers", summary.possible, told[LayerVerdict.POSSIBLE]),
            ("unknown layers", summary.unknown, told[LayerVerdict.UNKNOWN]),
        )
        for what, counted, listed in counts:
            if counted > listed:
                yield f"has {counted} {what} by its summary and {listed} in its list"
    for layer in judged:
        asked = layer.asked or engine.asked
        if layer.verdict is LayerVerdict.AS_ASKED and layer.compute is not None and layer.compute.rank > asked.rank:
            yield f"has a layer {layer.name} that is called as asked and computes in {layer.compute}, asked {asked}"
    old = context.baseline.engines.get(engine.name) if context.baseline is not None else None
    if old is not None and old.asked != engine.asked.value:
        yield f"was asked {engine.asked}, {old.asked} in the baseline"


def _gone(context: Context, evals: dict[str, EvalReport]) -> Iterator[Check]:
    """What the baseline knows and this run does not."""
    baseline, comparison = context.baseline, context.comparison
    if baseline is None:
        return
    for name, old in sorted(baseline.stages.items()):
        if name not in evals:
            yield _gap(name, f"{name} is in the baseline and is missing in this run")
        elif evals[name].ran:
            yield from _gone_from_stage(old, evals[name])
    for name in sorted(baseline.engines.keys() - {engine.name for engine in comparison.engines}):
        yield _gap(stage_of(name), f"engine {name} is in the baseline and is missing in this run")
    if not context.limits.latency:
        return
    yield from _latency_gone(context, baseline)


def _latency_gone(context: Context, baseline: Baseline) -> Iterator[Check]:
    """Latencies of the baseline that this run has not: each of each device, or any where the device was to change."""
    times = {(x.stage, x.device): x.p50_ms for x in context.comparison.latency}
    for stage, devices in sorted(baseline.latency.items()):
        if context.device_changed:
            known = any(p50 is not None for (name, _), p50 in times.items() if name == stage)
            missing = [] if known else [""]
        else:
            missing = [
                f" on {device or 'an unnamed device'}"
                for device, then in sorted(devices.items())
                if (stage, device) not in times or (then.p50_ms is not None and times[stage, device] is None)
            ]
        for where in missing:
            message = f"the latency of {stage}{where} is in the baseline and was not measured in this run"
            yield _gap(stage, message, metric="latency")


def _gone_from_stage(old: BaselineStage, report: EvalReport) -> Iterator[Check]:
    stage = report.stage
    for name in sorted(old.metrics.keys() - report.metrics.keys()):
        yield _gap(stage, f"{name} of {stage} is in the baseline and was not measured in this run", metric=name)
    for name in sorted(old.metrics.keys() & report.metrics.keys()):
        if name in old.per_sample and not report.per_sample.get(name):
            what = f"the baseline has {name} of {stage} for each sample, and this run has not"
            yield _gap(stage, what, "samples", name)
        if old.per_class.get(name) and not report.per_class.get(name):
            what = f"the baseline has {name} of {stage} for each class, and this run has not"
            yield _gap(stage, what, "worst-class", name)


def _required(context: Context, evals: dict[str, EvalReport]) -> Iterator[Check]:
    built = [engine.name for engine in context.comparison.engines if engine.built]
    done = {report.stage for report in evals.values() if report.ran} | set(built)
    done |= {stage_of(name) for name in built if stage_of(name) not in evals}
    for name in context.limits.require:
        if not any(matches(found, [name]) for found in done):
            yield _gap(name if literal([name]) else "", f"{name} is required and was not measured")

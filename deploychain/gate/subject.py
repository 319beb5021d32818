"""One metric of one stage under one rule: what it is held against, and how certain the loss is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from deploychain.gate import noise
from deploychain.gate.baseline import BaselineStage
from deploychain.gate.context import Context, Question, literal, number
from deploychain.gate.engines import suspects
from deploychain.gate.limits import AccuracyRule
from deploychain.gate.noise import Direction, Loss, Unit
from deploychain.gate.units import are_decisions, impossible, is_share, mixed
from deploychain.records import EvalReport
from deploychain.verdicts import Check, Status

# ||out - ref|| / ||ref|| of two FP32 computations of one network: a few hundred units in the last place (2^-24 = 6e-8).
_ROUNDING = 1e-5

# Sums of squares of larger values overflow; no metric is that large.
_HUGE = 1e100

Found = Check | Question
Values = tuple[float, ...]
Wanted = tuple[str, str, float | None, Unit]  # kind, field of the rule, limit, unit of the loss


def usable(values: Iterable[float | None] | None, count: int, mean: float) -> Values | None:
    """A per-sample series that may stand for the metric: complete, and with the metric as its mean.

    A metric that is no mean over samples (mAP, F1) has no paired bootstrap of this kind.
    """
    series = tuple(values or ())
    if not series or len(series) != count or any(v is None or not math.isfinite(v) for v in series):
        return None
    known = tuple(float(v) for v in series if v is not None)
    if max(map(abs, known)) > _HUGE:
        return None
    return known if math.isclose(math.fsum(known) / count, mean, rel_tol=1e-4, abs_tol=1e-6) else None


class Subject:
    """One metric of one stage under one rule."""

    def __init__(
        self, context: Context, rule: AccuracyRule, index: int, report: EvalReport, metric: str, direction: str | None
    ) -> None:
        self.context, self.rule, self.index = context, rule, index
        self.report, self.metric = report, metric
        self.direction: Direction | None = "higher" if direction == "higher" else "lower" if direction else None
        self.value = report.metrics[metric]

    def judge(self) -> Iterator[Found]:
        rule, value = self.rule, self.value
        if value is None or not math.isfinite(value):
            yield self._lacking("non-finite", f"{self.metric} of {self.report.stage} is not a finite number")
            return
        if self.direction is None:
            yield self._lacking(
                "missing",
                f"nobody says whether a higher or a lower {self.metric} is better: "
                "set `better` in a rule that names the metric",
            )
            return
        if impossible(self.metric, value):
            yield self._units(f"is {number(value)}, which is no share and no percentage")
            return
        if rule.floor is not None:
            yield self._floor(value, rule.floor, self.direction)
        if any(x is not None for x in (rule.retention, rule.max_drop, rule.worst_class, rule.agreement)):
            yield from self._against_parent(value, self.direction)
        if rule.baseline_retention is not None or rule.max_regression is not None:
            yield from self._against_baseline(value, self.direction)

    def _lacking(self, kind: str, message: str, status: Status = Status.INCOMPLETE) -> Check:
        return self._check(kind, message, status=status)

    def _units(self, what: str) -> Check:
        return self._lacking("units", f"{self.metric} of {self.report.stage} {what}: it is not compared")

    def _mixed(self, name: str, reference: float, value: float, direction: Direction, decided: bool) -> Check | None:
        """A finding where two numbers of the metric are a share and a percentage. ``decided``: the reference is the
        mean of right and wrong answers.
        """
        own = are_decisions(self._series(self.report, value)) if value == self.value else False
        if not mixed(self.metric, reference, value, direction, reference_decided=decided, value_decided=own):
            return None
        return self._units(
            f"is {number(value)}, {name} has {number(reference)}: one looks like a share, one like per cent"
        )

    def _allows_all(self, field: str, limit: float, reference: float, name: str) -> Check | None:
        """A finding where an absolute limit of a share allows the loss of everything: it was written in per cent."""
        if reference > 1.0 or not is_share(self.metric) or limit < (reference if self.direction == "higher" else 1.0):
            return None
        return self._units(
            f"may lose {number(limit)} ({field}), and {name} has {number(reference)}: the limit is in per cent"
        )

    def _check(
        self,
        kind: str,
        message: str,
        *,
        field: str = "",
        value: float | None = None,
        baseline: float | None = None,
        limit: float | None = None,
        status: Status = Status.NOTE,
        node: str = "",
    ) -> Check:
        return Check(
            self.report.stage,
            kind,
            status,
            message,
            metric=self.metric,
            node=node,
            value=value,
            baseline=baseline,
            limit=limit,
            severity=self.rule.severity,
            rule=("accuracy", self.index, *((field,) if field else ())),
            look=self._look(),
        )

    def _look(self) -> str:
        """The command that says which nodes cost it; it knows the steps below FP32."""
        stage, run = self.report.stage, self.context.run
        if stage == "qat" or stage.endswith(("-fp16", "-int8")):
            pipeline = f" --pipeline {self.context.pipeline}" if self.context.pipeline else ""
            return f"deploychain plan attribute {run}{pipeline} --stage {stage}"
        return f"deploychain report {run}"

    def _series(self, report: EvalReport, value: float) -> Values | None:
        return usable(report.per_sample.get(self.metric), report.samples, value)

    def _settings(self, *names: str) -> dict[str, int]:
        return {
            "draws": self.context.limits.resamples,
            "seed": self.context.seed(self.report.stage, self.metric, *names),
        }

    def _floor(self, value: float, floor: float, direction: Direction) -> Found:
        sign = -1.0 if direction == "higher" else 1.0
        series, spread = self._series(self.report, value), self.rule.noise or 0.0
        if is_share(self.metric) or are_decisions(series):
            clash = self._mixed("the limit", floor, value, direction, False)
            if clash is not None:
                return clash
        if series is not None:
            loss = noise.mean(series, direction, noise=spread, **self._settings("floor"))
        else:
            loss = noise.declared(sign * value, spread) if spread else noise.unknown(sign * value)
        word = "below the floor" if direction == "higher" else "above the ceiling"
        side = (
            word
            if sign * value > sign * floor
            else "within the floor"
            if direction == "higher"
            else "within the ceiling"
        )
        message = f"{self.metric} of {self.report.stage} is {number(value)}, {side} of {number(floor)}"
        check = self._check("floor", message, field="floor", value=value, limit=floor)
        # The estimate decides a pass: whoever sets a floor chooses its distance from what is expected.
        margin = math.inf if loss.bounds else sign * floor
        return Question(check, loss, sign * floor, margin, sign * floor)

    # --- against the parent of this run

    def _is_reference(self) -> bool:
        """Whether other stages are measured against this one, or there are none: it has no parent to lose from."""
        others = [r for r in self.context.comparison.evals if r.stage != self.report.stage]
        return not others or any(report.reference == self.report.stage for report in others)

    def _against_parent(self, value: float, direction: Direction) -> Iterator[Found]:
        rule, name = self.rule, self.rule.parent or self.report.reference
        if name in ("", self.report.stage) and (name == rule.parent or self._is_reference()):
            return
        parent = next((r for r in self.context.comparison.evals if r.stage == name), None)
        if parent is None or not parent.ran or parent is self.report:
            what = "itself" if parent is self.report else name or "none named"
            yield self._lacking("missing", f"{self.report.stage} has no measured parent ({what})")
            return
        reference = parent.metrics.get(self.metric)
        if reference is None or not math.isfinite(reference):
            yield self._lacking("missing", f"{self.metric} of the parent {name} is not known")
            return
        if parent.samples != self.report.samples:
            yield self._lacking(
                "samples",
                f"{self.report.stage} was measured on {self.report.samples} samples, {name} on {parent.samples}",
            )
            return
        pair = (self._series(parent, reference), self._series(self.report, value))
        clash = self._mixed(name, reference, value, direction, are_decisions(pair[0]))
        if clash is not None:
            yield clash
            return
        wanted: tuple[Wanted, ...] = (
            ("retention", "retention", rule.retention, "percent"),
            ("drop", "max_drop", rule.max_drop, "absolute"),
        )
        for kind, field, limit, unit in wanted:
            if limit is None:
                continue
            clash = self._allows_all(field, limit, reference, name) if unit == "absolute" else None
            if clash is not None:
                yield clash
            else:
                yield self._loss_question(kind, field, limit, unit, name, reference, value, direction, *pair)
        if rule.worst_class is not None:
            yield from self._worst_class(parent, rule.worst_class, direction)
        if rule.agreement is not None:
            yield self._agreement(name, rule.agreement)

    def _loss_question(
        self,
        kind: str,
        field: str,
        limit: float,
        unit: Unit,
        name: str,
        reference: float,
        value: float,
        direction: Direction,
        reference_series: Values | None,
        series: Values | None,
        fallback: Loss | None = None,
        since: str = "",
    ) -> Found:
        estimate = noise.point_loss(reference, value, direction, unit)
        if estimate is None:
            return self._lacking(
                kind,
                f"{self.metric} has no percentage of {number(reference)}: limit it with max_drop or max_regression",
            )
        scale = 100.0 / abs(reference) if unit == "percent" else 1.0
        spread = (self.rule.noise or 0.0) * scale
        whole = 100.0 if unit == "percent" else abs(reference)  # the loss of everything
        if fallback is None and estimate == 0.0 and self._same_outputs(name):
            loss = noise.certain(0.0, "the same outputs")
        elif series is not None and reference_series is not None:
            loss = noise.paired(reference_series, series, direction, unit, noise=spread, **self._settings(kind, name))
        elif fallback is not None:
            loss = fallback
        else:
            alone = noise.unknown(estimate, self.report.samples, whole)
            loss = noise.declared(estimate, spread) if spread else alone
        allowed = 100.0 - limit if unit == "percent" else limit
        practical = self.rule.practical if unit == "percent" else self.rule.practical / 100.0 * abs(reference)
        suffix = " %" if unit == "percent" else ""
        moved = f"{name} ({number(reference)} -> {number(value)}), limit {number(limit)}{suffix}"
        verb = f"keeps {number(100 - estimate)} % of" if unit == "percent" else f"loses {number(estimate)} against"
        message = f"{self.metric} of {self.report.stage} {verb} {moved}"
        shown = 100.0 - estimate if unit == "percent" else value
        check = self._check(kind, message + since, field=field, value=shown, baseline=reference, limit=limit)
        if estimate > allowed:
            node, module, source = suspects(self.context, self.report.stage)
            if node:
                text = f"{check.message}; in a lower precision than in the baseline: {node}"
                check = replace(check, message=text, node=node, module=module, source=source)
        return Question(check, loss, allowed, max(2 * allowed, practical), unit=suffix)

    def _same_outputs(self, reference: str) -> bool:
        """Whether the outputs are those of the reference but for the order of FP32 sums: no sample could differ."""
        report = self.report
        if report.reference != reference:
            return False
        return bool(report.exact) or (report.relative_error is not None and report.relative_error <= _ROUNDING)

    def _worst_class(self, parent: EvalReport, limit: float, direction: Direction) -> Iterator[Found]:
        stage = self.report.stage
        now, then = self.report.per_class.get(self.metric, {}), parent.per_class.get(self.metric, {})
        if not now or not then:
            status = Status.INCOMPLETE if self.rule.required else Status.NOTE
            yield self._lacking("worst-class", f"{self.metric} of {stage} was not measured by class", status)
            return
        if all(reference is None for reference in then.values()):
            yield self._lacking("worst-class", f"{self.metric} of {parent.stage} is not known for any class")
        most = [
            max((v for v in side.values() if v is not None and math.isfinite(v)), default=0.0) for side in (then, now)
        ]
        clash = self._mixed(f"the largest class of {parent.stage}", most[0], most[1], direction, False)
        if clash is not None:
            yield clash
            return
        for label in sorted(then):
            reference, value = then[label], now.get(label)
            if reference is None:
                continue  # the class has no sample
            if value is None or not math.isfinite(value) or not math.isfinite(reference):
                yield self._lacking("worst-class", f"{self.metric} of class {label} is not known for {stage}")
                continue
            estimate = noise.point_loss(reference, value, direction, "percent")
            if estimate is None:
                continue  # the parent never gets this class right: nothing can be lost
            loss = self._class_loss(parent, label, direction, reference, value) or noise.unknown(estimate)
            allowed = 100.0 - limit
            message = (
                f"class {label}: {self.metric} of {stage} keeps {number(100 - estimate)} % of {parent.stage} "
                f"({number(reference)} -> {number(value)}), limit {number(limit)} %"
            )
            check = self._check(
                "worst-class", message, field="worst_class", value=100 - estimate, baseline=reference, limit=limit
            )
            # The largest of many small samples: the estimate decides a pass, the bound a fail.
            margin = math.inf if loss.bounds else 2 * allowed
            yield Question(
                check, loss, allowed, margin, unit=" %", group=(stage, self.metric, "class", str(self.index))
            )

    def _class_loss(
        self, parent: EvalReport, label: str, direction: Direction, reference: float, value: float
    ) -> Loss | None:
        """The loss over the samples of one class; None where their mean is not what was reported for the class."""
        labels = self.report.sample_classes or parent.sample_classes
        chosen = [i for i, name in enumerate(labels) if name == label]
        pair = []
        for report, mean in ((parent, reference), (self.report, value)):
            values = report.per_sample.get(self.metric, ())
            whole = len(labels) == len(values) == report.samples
            pair.append(usable([values[i] for i in chosen] if whole else None, len(chosen), mean))
        if pair[0] is None or pair[1] is None or not any(pair[0]):
            return None
        return noise.paired(pair[0], pair[1], direction, "percent", **self._settings("class", label))

    def _agreement(self, parent: str, limit: float) -> Found:
        report = self.report
        measured = report.reference == parent and report.agreement is not None and report.samples > 0
        if not measured or report.agreement is None or not 0 <= report.agreement <= 1:
            status = Status.INCOMPLETE if self.rule.required else Status.NOTE
            return self._lacking("agreement", f"agreement of {report.stage} with {parent} was not measured", status)
        loss = noise.share(report.agreement * report.samples, report.samples)
        message = (
            f"{report.stage} decides {100 * report.agreement:.2f} % of the samples as {parent} does, "
            f"limit {100 * limit:g} %"
        )
        check = self._check("agreement", message, field="agreement", value=report.agreement, limit=limit)
        return Question(check, loss, 1 - limit, math.inf, 1 - limit)

    # --- against the accepted baseline

    def _against_baseline(self, value: float, direction: Direction) -> Iterator[Found]:
        rule, baseline = self.rule, self.context.baseline
        if baseline is None:
            return
        stage: BaselineStage | None = baseline.stages.get(self.report.stage)
        reference = stage.metrics.get(self.metric) if stage is not None else None
        if stage is None or reference is None:
            status = Status.INCOMPLETE if rule.required and literal(rule.stage) else Status.NOTE
            yield self._lacking("baseline", f"{self.metric} of {self.report.stage} is not in the baseline", status)
            return
        if stage.samples != self.report.samples:
            yield self._lacking(
                "samples",
                f"{self.report.stage} was measured on {self.report.samples} samples, the baseline on {stage.samples}",
            )
            return
        packed = stage.per_sample.get(self.metric)
        series = self._series(self.report, value)
        old = usable(packed.values() if packed else None, stage.samples, reference)
        clash = self._mixed("the baseline", reference, value, direction, are_decisions(old))
        if clash is not None:
            yield clash
            return
        since = f" (baseline of {baseline.history[-1].date[:10]})" if baseline.history else ""
        wanted: tuple[Wanted, ...] = (
            ("regression", "baseline_retention", rule.baseline_retention, "percent"),
            ("regression", "max_regression", rule.max_regression, "absolute"),
        )
        for kind, field, limit, unit in wanted:
            if limit is None:
                continue
            clash = self._allows_all(field, limit, reference, "the baseline") if unit == "absolute" else None
            if clash is not None:
                yield clash
                continue
            fallback = None
            if old is None and packed is not None and series is not None:
                fallback = _unpaired(packed.mean, packed.deviation, packed.count, series, direction, unit)
            name = "the baseline"
            yield self._loss_question(
                kind, field, limit, unit, name, reference, value, direction, old, series, fallback, since
            )


def _unpaired(
    mean: float,
    deviation: float,
    count: int,
    series: Values,
    direction: Direction,
    unit: Literal["absolute", "percent"],
) -> Loss | None:
    now = math.fsum(series) / len(series)
    if unit == "percent" and (mean <= 0 or now <= 0):
        return None
    spread = math.sqrt(math.fsum((v - now) ** 2 for v in series) / max(1, len(series) - 1))
    return noise.unpaired((mean, deviation, count), (now, spread, len(series)), direction, unit)

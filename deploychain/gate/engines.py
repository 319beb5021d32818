"""Layers and sizes of built engines, and latencies, against limits and the accepted baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from deploychain.gate import noise
from deploychain.gate.baseline import BaselineEngine, arithmetic, count_copies, layer_nodes
from deploychain.gate.context import Context, Question, literal, matches, number
from deploychain.gate.limits import LatencyRule, LayerRule, SizeRule
from deploychain.gate.verdict import Check, Status
from deploychain.precision import Precision
from deploychain.records import EngineReport, Latency, LayerRecord, LayerVerdict

Found = Check | Question


def stage_of(engine: str) -> str:
    """The evaluation stage that an engine belongs to: fp16 -> engine-fp16."""
    return engine if engine.startswith("engine-") else f"engine-{engine}"


def judge_layers(context: Context) -> Iterator[Found]:
    """Every layer rule on every built engine that it names."""
    built = {engine.name: engine for engine in context.comparison.engines if engine.built}
    for index, rule in enumerate(context.limits.layers):
        hit = False
        for engine in built.values():
            if matches(engine.name, rule.engine):
                hit = True
                yield from _EngineUnderRule(context, rule, index, engine).judge()
        yield from _unmatched(context, "layers", index, rule.required, rule.engine, hit)


def _unmatched(
    context: Context, section: str, index: int, required: bool, patterns: Sequence[str], hit: bool
) -> Iterator[Check]:
    if not required:
        return
    known = {engine.name for engine in context.comparison.engines}
    absent = [name for name in literal(patterns) if name not in known]
    if not hit and not absent and not any(matches(name, patterns) for name in known):
        absent = [", ".join(patterns)]
    for name in absent:
        message = f"{section}[{index}] limits engine {name}, and the run has none of that name"
        yield Check(stage_of(name), "missing", Status.INCOMPLETE, message, rule=(section, index))


def _worse(now: Precision | None, then: str | None) -> bool:
    """Whether a layer computes in a higher precision than it did: more time, more memory."""
    return now is not None and then is not None and now.rank > Precision(then).rank


class _EngineUnderRule:
    def __init__(self, context: Context, rule: LayerRule, index: int, engine: EngineReport) -> None:
        self.context, self.rule, self.index, self.engine = context, rule, index, engine
        self.stage = stage_of(engine.name)
        self.layers: list[LayerRecord] = [
            layer for layer in arithmetic(engine) if any(matches(n, rule.node) for n in layer_nodes(layer))
        ]
        baseline = context.baseline
        self.old: BaselineEngine | None = baseline.engines.get(engine.name) if baseline is not None else None

    def _check(self, kind: str, message: str, status: Status, **fields: object) -> Check:
        field = fields.pop("field", None)
        return Check(
            self.stage,
            kind,
            status,
            message,
            severity=self.rule.severity,
            rule=("layers", self.index, *((str(field),) if field else ())),
            look=f"deploychain report {self.context.run}",
            **fields,  # type: ignore[arg-type]
        )

    def judge(self) -> Iterator[Check]:
        if not self.layers:
            if self.engine.layers and self.rule.node != ("*",):
                what = f"no layer of engine {self.engine.name} matches {', '.join(self.rule.node)}"
            else:
                what = f"engine {self.engine.name} has no layer evidence"
            yield self._check("missing", what, Status.INCOMPLETE)
            return
        for verdict, field, kind, word in (
            (LayerVerdict.FALLBACK, "max_fallback", "fallback", "runs in a higher precision than asked"),
            (LayerVerdict.DEMOTED, "max_demoted", "demoted", "runs in a lower precision than asked"),
            (LayerVerdict.POSSIBLE, "max_possible", "possible-fallback", "may hold a fallback"),
        ):
            limit = getattr(self.rule, field)
            if limit is not None:
                yield from self._count(verdict, field, kind, word, limit)
        if self.rule.max_unknown is not None:
            yield self._unknown(self.rule.max_unknown)
        yield from self._shares()
        if self.rule.max_copies is not None:
            yield self._total_copies(self.rule.max_copies)
        yield from self._against_baseline()

    def _count(self, verdict: LayerVerdict, field: str, kind: str, word: str, limit: int) -> Iterator[Check]:
        found = [layer for layer in self.layers if layer.verdict is verdict]
        unknown = sum(layer.verdict is LayerVerdict.UNKNOWN for layer in self.layers)
        opaque = sum(layer.verdict is LayerVerdict.POSSIBLE for layer in self.layers)
        if len(found) <= limit:
            open_ends = [f"{unknown} unknown"] * bool(unknown) + [f"{opaque} opaque"] * bool(
                opaque and verdict is not LayerVerdict.POSSIBLE
            )
            rest = f"; {' and '.join(open_ends)} could not be judged" if open_ends else ""
            message = (
                f"{len(found)} of {len(self.layers)} layers of engine {self.engine.name}: {word}, limit {limit}{rest}"
            )
            yield self._check(kind, message, Status.PASS, value=float(len(found)), limit=float(limit), field=field)
            return
        # Each layer is a finding of its own: it has its own node, module and source line.
        for layer in sorted(found, key=lambda x: -(x.share or 0.0)):
            precision = f"{layer.compute or 'unknown'} instead of {layer.asked or self.engine.asked}"
            share = f", {100 * layer.share:.3g} % of the layer time" if layer.share is not None else ""
            reason = f": {layer.reason}" if layer.reason else ""
            yield self._check(
                kind,
                f"layer {layer.name} of engine {self.engine.name} {word} ({precision}{share}){reason}; "
                f"{len(found)} such layers, limit {limit}",
                Status.FAIL,
                node=" + ".join(layer.onnx_nodes) or layer.name,
                module=layer.module or "",
                value=float(len(found)),
                limit=float(limit),
                field=field,
                source=layer.source,
            )

    def _unknown(self, limit: int) -> Check:
        found = [layer for layer in self.layers if layer.verdict is LayerVerdict.UNKNOWN]
        over = len(found) > limit
        names = (
            ": " + ", ".join(layer.name for layer in found[:5]) + (", ..." if len(found) > 5 else "") if over else ""
        )
        return self._check(
            "unknown-layers",
            f"{len(found)} of {len(self.layers)} layers of engine {self.engine.name} could not be judged, "
            f"limit {limit}{names}",
            Status.INCOMPLETE if over else Status.PASS,
            node=" + ".join(found[0].onnx_nodes) or found[0].name if over else "",
            value=float(len(found)),
            limit=float(limit),
            field="max_unknown",
        )

    def _shares(self) -> Iterator[Check]:
        """Shares between what surely is as asked and what may be: an unknown layer is neither."""
        sure = {LayerVerdict.AS_ASKED, LayerVerdict.EXPECTED}
        may = sure | {LayerVerdict.UNKNOWN, LayerVerdict.POSSIBLE}
        for field, limit in (("min_share", self.rule.min_share), ("min_time_share", self.rule.min_time_share)):
            if limit is None:
                continue
            timed = field == "min_time_share"
            weights = [layer.time_ms if timed else 1.0 for layer in self.layers]
            kind, what = ("time-share", "layer time") if timed else ("layer-share", "layers")
            if any(w is None for w in weights) or sum(w or 0.0 for w in weights) <= 0:
                message = f"engine {self.engine.name} was not profiled layer by layer"
                yield self._check(kind, message, Status.INCOMPLETE, limit=limit, field=field)
                continue
            total = sum(w or 0.0 for w in weights)
            pairs = list(zip(weights, self.layers, strict=True))
            low = sum(w or 0.0 for w, layer in pairs if layer.verdict in sure) / total
            high = sum(w or 0.0 for w, layer in pairs if layer.verdict in may) / total
            status = Status.PASS if low >= limit else Status.FAIL if high < limit else Status.INCONCLUSIVE
            upto = f" (up to {100 * high:.3g} %, with those that could not be judged)" if high > low else ""
            message = (
                f"{100 * low:.3g} % of the {what} of engine {self.engine.name} is as asked{upto}, "
                f"limit {100 * limit:.3g} %"
            )
            yield self._check(kind, message, status, value=low, limit=limit, field=field)

    def _total_copies(self, limit: int) -> Check:
        copies = count_copies(self.engine)
        return self._check(
            "copies",
            f"{copies} casts and reformats in engine {self.engine.name}, limit {limit}",
            Status.FAIL if copies > limit else Status.PASS,
            value=float(copies),
            limit=float(limit),
            field="max_copies",
        )

    def _against_baseline(self) -> Iterator[Check]:
        rule, old = self.rule, self.old
        if self.context.baseline is None or (
            rule.max_lost is None and rule.max_lost_fusions is None and rule.max_new_copies is None
        ):
            return
        if old is None:
            yield self._check("baseline", f"engine {self.engine.name} is not in the baseline", Status.NOTE)
            return
        if rule.max_lost is not None:
            yield from self._lost(old, rule.max_lost)
        if rule.max_lost_fusions is not None:
            yield from self._lost_fusions(old, rule.max_lost_fusions)
        if rule.max_new_copies is not None:
            copies = count_copies(self.engine)
            more = copies - old.copies
            yield self._check(
                "new-copies",
                f"{copies} casts and reformats in engine {self.engine.name}, {old.copies} in the baseline, "
                f"{rule.max_new_copies} more allowed",
                Status.FAIL if more > rule.max_new_copies else Status.PASS,
                value=float(copies),
                baseline=float(old.copies),
                limit=float(rule.max_new_copies),
                field="max_new_copies",
            )

    def _lost(self, old: BaselineEngine, limit: int) -> Iterator[Check]:
        before = {node: layer.compute for layer in old.layers for node in layer.nodes}
        lost = [
            (layer, [n for n in layer_nodes(layer) if _worse(layer.compute, before.get(n))]) for layer in self.layers
        ]
        lost = [(layer, nodes) for layer, nodes in lost if nodes]
        if len(lost) <= limit:
            message = (
                f"{len(lost)} layers of engine {self.engine.name} lost the precision of the baseline, limit {limit}"
            )
            yield self._check(
                "lost-precision", message, Status.PASS, value=float(len(lost)), limit=float(limit), field="max_lost"
            )
            return
        for layer, nodes in lost:
            yield self._check(
                "lost-precision",
                f"layer {layer.name} of engine {self.engine.name} computes in {layer.compute}, "
                f"in {before[nodes[0]]} in the baseline; {len(lost)} such layers, limit {limit}",
                Status.FAIL,
                node=" + ".join(nodes),
                module=layer.module or "",
                value=float(len(lost)),
                limit=float(limit),
                field="max_lost",
                source=layer.source,
            )

    def _lost_fusions(self, old: BaselineEngine, limit: int) -> Iterator[Check]:
        now = {node: index for index, layer in enumerate(self.layers) for node in layer_nodes(layer)}
        split = []
        for layer in old.layers:
            nodes = [node for node in layer.nodes if node in now]
            parts = len({now[node] for node in nodes})
            if parts > 1:
                split.append((nodes, parts))
        over = len(split) > limit
        for nodes, parts in split if over else []:
            yield self._check(
                "lost-fusion",
                f"{' + '.join(nodes)} was one layer of engine {self.engine.name} in the baseline and is {parts} now; "
                f"{len(split)} such layers, limit {limit}",
                Status.FAIL,
                node=" + ".join(nodes),
                value=float(len(split)),
                limit=float(limit),
                field="max_lost_fusions",
            )
        if not over:
            message = f"{len(split)} fusions of the baseline are lost in engine {self.engine.name}, limit {limit}"
            yield self._check(
                "lost-fusion",
                message,
                Status.PASS,
                value=float(len(split)),
                limit=float(limit),
                field="max_lost_fusions",
            )


def judge_size(context: Context) -> Iterator[Found]:
    """Engine file sizes. They carry no noise; what moves between two builds is in the limit."""
    device = context.comparison.provenance.device
    for index, rule in enumerate(context.limits.size):
        hit = False
        for engine in context.comparison.engines:
            if engine.built and matches(engine.name, rule.engine) and matches(device, rule.device):
                hit = True
                yield from _size(context, rule, index, engine)
        if rule.required and not hit and not matches(device, rule.device):
            message = (
                f"size[{index}] is for {', '.join(rule.device)}, the run was made on {device or 'an unnamed device'}"
            )
            yield Check("", "missing", Status.INCOMPLETE, message, rule=("size", index))
        else:
            yield from _unmatched(context, "size", index, rule.required, rule.engine, hit)


def _size(context: Context, rule: SizeRule, index: int, engine: EngineReport) -> Iterator[Check]:
    stage, size = stage_of(engine.name), engine.size_bytes
    if size is None:
        status = Status.INCOMPLETE if rule.required else Status.NOTE
        message = f"the size of engine {engine.name} is not known"
        yield Check(stage, "size", status, message, rule=("size", index), severity=rule.severity)
        return
    if rule.max_bytes is not None:
        yield Check(
            stage,
            "size",
            Status.FAIL if size > rule.max_bytes else Status.PASS,
            f"engine {engine.name} has {size} bytes, limit {rule.max_bytes}",
            value=float(size),
            limit=float(rule.max_bytes),
            severity=rule.severity,
            rule=("size", index, "max_bytes"),
        )
    old = context.baseline.engines.get(engine.name) if context.baseline is not None else None
    if rule.max_increase is not None and old is not None and old.size_bytes:
        more = 100.0 * (size / old.size_bytes - 1.0)
        yield Check(
            stage,
            "size",
            Status.FAIL if more > rule.max_increase else Status.PASS,
            f"engine {engine.name} is {more:+.3g} % in size ({old.size_bytes} -> {size} bytes), "
            f"limit +{rule.max_increase:g} %",
            value=float(size),
            baseline=float(old.size_bytes),
            limit=rule.max_increase,
            severity=rule.severity,
            rule=("size", index, "max_increase"),
        )


def judge_latency(context: Context) -> Iterator[Found]:
    """Latency rules on the stages and devices that they name."""
    measured = context.comparison.latency
    for index, rule in enumerate(context.limits.latency):
        chosen = [x for x in measured if matches(x.stage, rule.stage)]
        here = [x for x in chosen if matches(x.device, rule.device)]
        for latency in here:
            yield from _latency(context, rule, index, latency)
        if not rule.required:
            continue
        known = {x.stage for x in chosen}
        for name in [n for n in literal(rule.stage) if n not in known] or (
            [", ".join(rule.stage)] if not chosen else []
        ):
            message = f"latency[{index}] limits {name}, and its latency was not measured"
            yield Check(name, "missing", Status.INCOMPLETE, message, rule=("latency", index), severity=rule.severity)
        if chosen and not here:
            devices = ", ".join(sorted({x.device or "an unnamed device" for x in chosen}))
            message = f"latency[{index}] is for {', '.join(rule.device)}, measured was on {devices}"
            yield Check(
                chosen[0].stage, "missing", Status.INCOMPLETE, message, rule=("latency", index), severity=rule.severity
            )


def _latency(context: Context, rule: LatencyRule, index: int, latency: Latency) -> Iterator[Found]:
    def check(kind: str, message: str, status: Status, field: str, **numbers: float | None) -> Check:
        return Check(
            latency.stage,
            kind,
            status,
            message,
            metric=field.removeprefix("max_"),
            severity=rule.severity,
            rule=("latency", index, field),
            **numbers,  # type: ignore[arg-type]
        )

    for field, value in (("max_p50_ms", latency.p50_ms), ("max_p99_ms", latency.p99_ms)):
        limit = getattr(rule, field)
        if limit is None:
            continue
        if value is None or not math.isfinite(value):
            message = f"{field[4:7]} latency of {latency.stage} is not known"
            yield check("latency", message, Status.INCOMPLETE, field, limit=limit)
            continue
        message = (
            f"{field[4:7]} latency of {latency.stage} on {latency.device}: {number(value)} ms, limit {number(limit)} ms"
        )
        loss = noise.unknown(value)
        if field == "max_p50_ms" and len(latency.repeats) >= 2:
            increase = noise.slowdown(
                [limit, limit], latency.repeats, draws=context.limits.resamples, seed=context.seed(latency.stage)
            )
            yield Question(
                check("latency", message, Status.NOTE, field, value=value, limit=limit),
                increase,
                0.0,
                math.inf,
                " %",
                per="repeats",
            )
            continue
        status = Status.FAIL if loss.estimate > limit else Status.PASS
        yield check("latency", message, status, field, value=value, limit=limit)
    if rule.max_increase is None or context.baseline is None:
        return
    old = context.baseline.latency.get(latency.stage)
    if old is None or old.p50_ms is None or latency.p50_ms is None:
        status = Status.INCOMPLETE if rule.required else Status.NOTE
        message = f"there is no latency of {latency.stage} to compare, here or in the baseline"
        yield check("latency", message, status, "max_increase", limit=rule.max_increase)
        return
    if old.device != latency.device:
        where = f"{latency.device or 'an unnamed device'} now, {old.device or 'an unnamed one'} in the baseline"
        message = f"latency of {latency.stage} cannot be compared: {where}"
        status = Status.NOTE if context.device_changed else Status.NOT_COMPARABLE
        yield check("latency", message, status, "max_increase", limit=rule.max_increase)
        return
    loss = noise.slowdown(
        old.repeats or (old.p50_ms,),
        latency.repeats or (latency.p50_ms,),
        draws=context.limits.resamples,
        seed=context.seed(latency.stage, "latency"),
        noise=rule.noise or 0.0,
    )
    message = (
        f"latency of {latency.stage} on {latency.device or 'an unnamed device'} is {loss.estimate:+.3g} % "
        f"({number(old.p50_ms)} -> {number(latency.p50_ms)} ms), limit +{rule.max_increase:g} %"
    )
    template = check(
        "latency",
        message,
        Status.NOTE,
        "max_increase",
        value=latency.p50_ms,
        baseline=old.p50_ms,
        limit=rule.max_increase,
    )
    yield Question(template, loss, rule.max_increase, 2 * rule.max_increase, " %", per="repeats")

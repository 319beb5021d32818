"""Engine sizes and latencies on a named device, against limits and the accepted baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator

from deploychain.gate import noise
from deploychain.gate.baseline import BaselineLatency, runs_and_parts
from deploychain.gate.context import Context, Question, literal, matches, number
from deploychain.gate.engines import stage_of, unmatched
from deploychain.gate.limits import LatencyRule, SizeRule
from deploychain.gate.units import scaled
from deploychain.records import EngineReport, Latency
from deploychain.verdicts import Check, Status

Found = Check | Question


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
            yield from unmatched(context, "size", index, rule.required, rule.engine, hit)


def _size(context: Context, rule: SizeRule, index: int, engine: EngineReport) -> Iterator[Check]:
    stage, size = stage_of(engine.name), engine.size_bytes
    if size is None or not 0 < size < 1 << 50:
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
    if rule.max_increase is None or context.baseline is None:
        return
    if old is None or not old.size_bytes:
        status = Status.INCOMPLETE if rule.required and literal(rule.engine) else Status.NOTE
        message = f"the size of engine {engine.name} is not in the baseline"
        yield Check(stage, "size", status, message, rule=("size", index, "max_increase"), severity=rule.severity)
    elif scaled(size, old.size_bytes):
        message = (
            f"engine {engine.name} has {size} bytes, {old.size_bytes} in the baseline: one of them is not in bytes, or "
            "is of another engine"
        )
        yield Check(stage, "units", Status.INCOMPLETE, message, rule=("size", index), severity=rule.severity)
    else:
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


def _sane(milliseconds: float) -> bool:
    """A time that a device can take: positive, and less than a day."""
    return math.isfinite(milliseconds) and 0 < milliseconds < 86_400_000


def _contradiction(latency: Latency) -> str:
    """What is wrong with the numbers of one latency among themselves; empty where they agree.

    The median must lie among those of its repeats or parts, and not above the 99th percentile (1 %: not every tool
    interpolates alike). So one number in another unit is seen too.
    """
    for values, what in ((latency.repeats, "repeats"), (latency.parts, "parts")):
        if latency.p50_ms is not None and values and not 0.99 * min(values) <= latency.p50_ms <= 1.01 * max(values):
            return f"lies outside its own {what}"
    if latency.p50_ms is not None and latency.p99_ms is not None and latency.p50_ms > 1.01 * latency.p99_ms:
        return "lies above its own p99"
    return ""


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

    runs, parts = runs_and_parts(latency)
    where = latency.device or "an unnamed device"
    numbers = (latency.p50_ms, latency.p99_ms, *latency.repeats, *latency.parts)
    if not all(v is None or _sane(v) for v in numbers):
        message = f"the latency of {latency.stage} on {where} holds a number that is no time"
        yield check("latency", message, Status.INCOMPLETE, "max_p50_ms")
        return
    wrong = _contradiction(latency)
    if wrong:
        message = f"the p50 latency of {latency.stage} on {where} {wrong}"
        yield check("latency", message, Status.INCOMPLETE, "max_p50_ms", value=latency.p50_ms)
        return
    for field, value in (("max_p50_ms", latency.p50_ms), ("max_p99_ms", latency.p99_ms)):
        limit = getattr(rule, field)
        if limit is None:
            continue
        if value is None:
            message = f"{field[4:7]} latency of {latency.stage} on {where} is not known"
            yield check("latency", message, Status.INCOMPLETE, field, limit=limit)
            continue
        message = (
            f"{field[4:7]} latency of {latency.stage} on {latency.device}: {number(value)} ms, limit {number(limit)} ms"
        )
        loss = noise.unknown(value)
        if field == "max_p50_ms" and len(runs) >= 2:
            increase = noise.slowdown(
                [limit, limit], runs, draws=context.limits.resamples, seed=context.seed(latency.stage)
            )
            yield Question(
                check("latency", message, Status.NOTE, field, value=value, limit=limit),
                increase,
                0.0,
                math.inf,
                unit=" %",
                per="repeats",
            )
            continue
        status = Status.FAIL if loss.estimate > limit else Status.PASS
        yield check("latency", message, status, field, value=value, limit=limit)
    if rule.max_increase is None or context.baseline is None:
        return
    devices = context.baseline.latency.get(latency.stage, {})
    old = devices.get(latency.device, BaselineLatency())
    here = {x.device for x in context.comparison.latency if x.stage == latency.stage}
    if latency.device not in devices and devices and here.isdisjoint(devices):
        names = ", ".join(sorted(name or "an unnamed device" for name in devices))
        message = f"latency of {latency.stage} cannot be compared: {where} now, {names} in the baseline"
        status = Status.NOTE if context.device_changed else Status.NOT_COMPARABLE
        yield check("latency", message, status, "max_increase", limit=rule.max_increase)
        return
    if old.p50_ms is None or latency.p50_ms is None:
        status = Status.INCOMPLETE if rule.required else Status.NOTE
        message = f"there is no latency of {latency.stage} on {where} to compare, here or in the baseline"
        yield check("latency", message, status, "max_increase", limit=rule.max_increase)
        return
    if not all(map(_sane, (old.p50_ms, *old.repeats, *old.parts))):
        message = f"the latency of {latency.stage} on {where} in the baseline holds a number that is no time"
        yield check("latency", message, Status.INCOMPLETE, "max_increase", baseline=old.p50_ms)
        return
    moved = f"({number(old.p50_ms)} -> {number(latency.p50_ms)} ms)"
    if scaled(old.p50_ms, latency.p50_ms):
        message = f"latency of {latency.stage} on {where} {moved}: no change does that; one of them is not in ms"
        yield check("units", message, Status.INCOMPLETE, "max_increase", value=latency.p50_ms, baseline=old.p50_ms)
        return
    loss = noise.slowdown(
        old.repeats or (old.p50_ms,),
        runs or (latency.p50_ms,),
        draws=context.limits.resamples,
        seed=context.seed(latency.stage, "latency"),
        noise=rule.noise or 0.0,
        parts=(old.parts, parts),
    )
    message = f"latency of {latency.stage} on {where} is {loss.estimate:+.3g} % {moved}, limit +{rule.max_increase:g} %"
    template = check(
        "latency",
        message,
        Status.NOTE,
        "max_increase",
        value=latency.p50_ms,
        baseline=old.p50_ms,
        limit=rule.max_increase,
    )
    yield Question(template, loss, rule.max_increase, 2 * rule.max_increase, unit=" %", per="repeats")

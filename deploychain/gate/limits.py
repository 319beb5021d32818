"""The limits of a gate: what may be lost, where, and against what. From `gate:` in pipeline.yaml or from gate.yaml.

Each default says why it is what it is. Retention is in per cent of a reference, so that one limit fits metrics of any
scale; `floor`, `max_drop` and `max_regression` are in the metric's own units.
"""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from deploychain.config import Key, load_yaml
from deploychain.errors import ConfigError
from deploychain.settings import NUMBER

Severity = Literal["error", "warning"]
Fact = Literal["tensorrt", "device", "flags", "pipeline"]


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Patterns = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_as_tuple), Field(min_length=1)]
Percent = Annotated[float, Field(gt=1.0, le=100.0), NUMBER]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), NUMBER]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False), NUMBER]
Finite = Annotated[float, Field(allow_inf_nan=False), NUMBER]
Share = Annotated[float, Field(ge=0, le=1), NUMBER]
Count = Annotated[int, Field(ge=0), NUMBER]


class _Limits(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _needs_one(rule: _Limits, names: Sequence[str]) -> None:
    if all(getattr(rule, name) is None for name in names):
        raise ValueError(f"a rule that limits nothing: give at least one of {', '.join(names)}")


class AccuracyRule(_Limits):
    """Limits on task metrics; every rule applies to every stage and metric that its patterns name."""

    stage: Patterns = Field(default=("*",), description="Stage names or patterns (fnmatch): engine-int8, *-fp16.")
    metric: Patterns = Field(default=("*",), description="Metric names or patterns.")
    better: Literal["higher", "lower"] | None = Field(
        default=None,
        description="Only metrics of this direction; in a rule that names its metrics also the direction of one "
        "for which the run records none.",
    )
    parent: str | None = Field(
        default=None, description="The stage to measure drops from. Default: the reference that the run itself used."
    )
    floor: Finite | None = Field(
        default=None, description="Worst value allowed: a floor where higher is better, a ceiling where lower is."
    )
    retention: Percent | None = Field(default=None, description="Per cent of the parent's value that must be kept.")
    max_drop: NonNegative | None = Field(
        default=None, description="Largest loss against the parent, in the metric's units."
    )
    baseline_retention: Percent | None = Field(
        default=None, description="Per cent of the accepted baseline's value that must be kept."
    )
    max_regression: NonNegative | None = Field(
        default=None, description="Largest loss against the accepted baseline, in the metric's units."
    )
    worst_class: Percent | None = Field(
        default=None, description="Per cent of the parent's value that every single class must keep."
    )
    agreement: Share | None = Field(
        default=None, description="Smallest share of samples that are decided as the parent decides them."
    )
    practical: NonNegative = Field(
        default=0.6,
        description="Per cent of the reference. A pass must exclude, with `confidence`, a drop larger than "
        "max(2 x limit, practical). Default 0.6: what 500 samples exclude when no decision was lost (rule of three), "
        "and 800 when one was. "
        "0: twice the limit, however small the limit is.",
    )
    noise: Positive | None = Field(
        default=None,
        description="Standard deviation of the metric between rebuilds or retrainings, in its units, from repeated "
        "runs; added to the sampling noise. Needed for a metric without per-sample values.",
    )
    required: bool = Field(default=True, description="false: judge only where it was measured.")
    severity: Severity = "error"

    @model_validator(mode="after")
    def _limits_something(self) -> AccuracyRule:
        _needs_one(
            self,
            ("floor", "retention", "max_drop", "baseline_retention", "max_regression", "worst_class", "agreement"),
        )
        return self


class LayerRule(_Limits):
    """Limits on the layers of built engines."""

    engine: Patterns = Field(default=("*",), description="Engine names or patterns: fp16, int8.")
    node: Patterns = Field(
        default=("*",), description="ONNX node patterns; a layer counts if one of its nodes matches."
    )
    max_fallback: Count | None = Field(
        default=None, description="Layers that certainly run in a higher precision than asked."
    )
    max_demoted: Count | None = Field(
        default=None, description="Layers that certainly run in a lower precision than asked."
    )
    max_possible: Count | None = Field(default=None, description="Opaque layers that may hold a fallback.")
    max_unknown: Count | None = Field(default=None, description="Layers that could not be judged.")
    max_lost: Count | None = Field(
        default=None, description="Nodes whose layer runs in a higher precision than in the baseline."
    )
    max_lowered: Count | None = Field(
        default=None, description="Nodes whose layer runs in a lower precision than in the baseline."
    )
    max_lost_fusions: Count | None = Field(
        default=None, description="Layers of the baseline whose nodes are spread over more layers now."
    )
    max_copies: Count | None = Field(default=None, description="Casts and reformats.")
    max_new_copies: Count | None = Field(default=None, description="Casts and reformats more than in the baseline.")
    min_share: Share | None = Field(
        default=None, description="Share of compute layers in the asked precision (or planned)."
    )
    min_time_share: Share | None = Field(
        default=None, description="Share of layer time in the asked precision (or planned)."
    )
    required: bool = True
    severity: Severity = "error"

    @model_validator(mode="after")
    def _limits_something(self) -> LayerRule:
        names = [n for n in type(self).model_fields if n.startswith(("max_", "min_"))]
        _needs_one(self, names)
        return self


class LatencyRule(_Limits):
    """Limits on latency. An absolute limit means nothing without the device that it is for."""

    stage: Patterns = ("*",)
    device: Patterns = Field(default=("*",), description="The device, as the run records it, that the limit is for.")
    max_p50_ms: Positive | None = None
    max_p99_ms: Positive | None = None
    max_increase: Positive | None = Field(
        default=None, description="Per cent slower (p50) than the baseline, same device."
    )
    noise: Positive | None = Field(
        default=None, description="Standard deviation between builds, per cent; needed with fewer than two repeats."
    )
    required: bool = True
    severity: Severity = "error"

    @model_validator(mode="after")
    def _limits_something(self) -> LatencyRule:
        _needs_one(self, ("max_p50_ms", "max_p99_ms", "max_increase"))
        if (self.max_p50_ms is not None or self.max_p99_ms is not None) and self.device == ("*",):
            raise ValueError("an absolute latency limit needs `device`: milliseconds of another device prove nothing")
        return self


class SizeRule(_Limits):
    """Limits on the size of engine files."""

    engine: Patterns = ("*",)
    device: Patterns = Field(default=("*",), description="The device of the run that the limit is for.")
    max_bytes: Annotated[int, Field(gt=0), NUMBER] | None = None
    max_increase: Positive | None = Field(default=None, description="Per cent larger than the baseline's engine.")
    required: bool = True
    severity: Severity = "error"

    @model_validator(mode="after")
    def _limits_something(self) -> SizeRule:
        _needs_one(self, ("max_bytes", "max_increase"))
        return self


class Waiver(_Limits):
    """A finding that is accepted for a time: it stays in every report, with its reason, and decides nothing."""

    reason: Annotated[str, Field(min_length=10)] = Field(description="Why, in a sentence that a reviewer can judge.")
    stage: Patterns = ("*",)
    kind: Patterns = Field(default=("*",), description="missing, fallback, retention, ...: the `kind` of the finding.")
    metric: Patterns = ("*",)
    node: Patterns = ("*",)
    until: datetime.date | None = Field(default=None, description="Last day on which the waiver holds.")

    @model_validator(mode="after")
    def _aims(self) -> Waiver:
        # Whatever its spelling ("*", "**"), a pattern of everything matches a name that nothing has.
        if all(any(fnmatchcase("\0", p) for p in getattr(self, n)) for n in ("stage", "kind", "metric", "node")):
            raise ValueError("a waiver of everything is no gate: name a stage, kind, metric or node")
        return self


# Steps that keep fewer mantissa bits than FP16, whoever measured them; training in AMP may be in BF16.
_COARSE = ("train-amp", "qat", "*-bf16", "*-fp8", "*-fp4", "*-int8", "*-int4")


def _default_accuracy() -> tuple[AccuracyRule, ...]:
    return (
        # FP16 99.9 % and INT8 99 % of FP32: the two quality classes of MLPerf Inference. FP16 keeps ten mantissa bits,
        # and an FP32 export or engine changes the order of sums only, so anything below 99.9 % is a fault to look at.
        # Losses are left out: a percentage of a loss near zero means nothing.
        AccuracyRule(stage=("*-fp16", "*-fp32", "weights"), better="higher", retention=99.9, required=False),
        AccuracyRule(stage=_COARSE, better="higher", retention=99.0, required=False),
        # 1 % against the baseline: the smallest drop that a thousand samples tell from a retrained model
        # (3 % changed decisions: paired standard error sqrt(0.03 / 1000) = 0.5 points).
        AccuracyRule(stage=("*",), better="higher", baseline_retention=99.0, required=False),
        # 90 %: an average of ten classes hides one class that lost a tenth; the largest of ten small samples is noisy.
        AccuracyRule(stage=("*",), better="higher", worst_class=90.0, required=False),
    )


def _default_layers() -> tuple[LayerRule, ...]:
    return (
        # Nothing may be built in more than what was asked or planned; a layer that cannot be judged could be one.
        LayerRule(max_fallback=0, max_unknown=0, max_lost=0, required=False),
        # Two builds of one model may choose other tactics, which moves a reformat or splits a fusion: worth a look,
        # no proof of a fault. Latency shows whether it costs anything; accuracy, what a lower precision costs.
        LayerRule(
            max_demoted=0, max_lowered=0, max_new_copies=0, max_lost_fusions=0, required=False, severity="warning"
        ),
    )


def _default_latency() -> tuple[LatencyRule, ...]:
    # 10 % and 20 %: what performance trackers (CodSpeed, github-action-benchmark) alert at; run-to-run noise on a
    # Jetson with locked clocks is a few per cent.
    return (
        LatencyRule(max_increase=10.0, severity="warning", required=False),
        LatencyRule(max_increase=20.0, required=False),
    )


def _default_size() -> tuple[SizeRule, ...]:
    # A layer that falls back from INT8 to FP32 stores four times the weights; tactics alone move a per cent or two.
    return (SizeRule(max_increase=25.0, severity="warning", required=False),)


class GateLimits(_Limits):
    """Everything that a gate is told. A section that is given replaces the defaults of that section."""

    baseline: str = Field(
        default="gate-baseline.json", description="The accepted baseline, relative to the file of the limits."
    )
    accuracy: tuple[AccuracyRule, ...] = Field(default_factory=_default_accuracy)
    layers: tuple[LayerRule, ...] = Field(default_factory=_default_layers)
    latency: tuple[LatencyRule, ...] = Field(default_factory=_default_latency)
    size: tuple[SizeRule, ...] = Field(default_factory=_default_size)
    require: tuple[str, ...] = Field(
        default=(), description="Stages (evaluations) and engines that must have been measured."
    )
    waivers: tuple[Waiver, ...] = ()
    expect_change: tuple[Fact, ...] = Field(
        default=(),
        description="What this change replaces on purpose: it may differ from the baseline, and the report says so.",
    )
    on_inconclusive: Literal["fail", "warn"] = Field(
        default="fail", description="Exit code of an inconclusive gate: 5, or 0. The verdict stays inconclusive."
    )
    confidence: Annotated[float, Field(ge=0.5, lt=1), NUMBER] = Field(
        default=0.95,
        description="Of the bound that a pass needs. 0.95: at most one real regression in twenty gets through.",
    )
    false_alarms: Annotated[float, Field(gt=0, le=0.2), NUMBER] = Field(
        default=0.01,
        description="Chance that a whole run without a change fails, shared among all of its comparisons (Bonferroni). "
        "0.01: one blocked merge in a hundred; more, and people learn to ignore the gate.",
    )
    resamples: Annotated[int, Field(ge=500, le=100_000), NUMBER] = Field(default=4000, description="Bootstrap draws.")
    seed: Annotated[int, Field(ge=0), NUMBER] = 0

    @model_validator(mode="after")
    def _judges_something(self) -> GateLimits:
        if not (self.accuracy or self.layers or self.latency or self.size):
            raise ValueError("accuracy, layers, latency and size are all empty: nothing would be judged")
        return self


_ITEM_MODELS: dict[str, type[_Limits]] = {
    "accuracy": AccuracyRule,
    "layers": LayerRule,
    "latency": LatencyRule,
    "size": SizeRule,
    "waivers": Waiver,
}


def _key(loc: Key) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)


def _remedy(error: Mapping[str, Any]) -> str:
    loc = error["loc"]
    if error["type"] == "extra_forbidden":
        model: type[_Limits] = GateLimits if len(loc) == 1 else _ITEM_MODELS.get(str(loc[0]), GateLimits)
        near = difflib.get_close_matches(str(loc[-1]), list(model.model_fields), n=1, cutoff=0.5)
        return f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(model.model_fields)}"
    value = error.get("input")
    if loc and str(loc[-1]) in ("retention", "baseline_retention", "worst_class") and isinstance(value, (int, float)):
        return "retention is in per cent: write 99.9 for 99.9 %, not 0.999"
    return ""


def parse_limits(raw: Mapping[str, Any] | None, where: str) -> GateLimits:
    """Validate a raw `gate:` section.

    Args:
        raw: the mapping as YAML gives it; None means all defaults.
        where: the file, with the line of the section if known: ``pipeline.yaml:12``.

    Raises:
        ConfigError: an unknown key (with the nearest valid one), a wrong value, a section that judges nothing.
    """
    if raw is not None and not isinstance(raw, Mapping):
        raise ConfigError("the gate section must be a mapping", where=where, remedy="see docs/gate.md")
    try:
        return GateLimits.model_validate(dict(raw or {}))
    except ValidationError as error:
        first = error.errors()[0]
        loc = tuple(first["loc"])
        message = re.sub(r"^Value error, ", "", first["msg"])
        if first["type"] == "extra_forbidden":
            message = "unknown key"
        place = _place(where, loc)
        raise ConfigError(f"gate{_key(loc)}: {message}", where=place, remedy=_remedy(first)) from None


def _place(where: str, loc: Key) -> str:
    """Move ``file:line`` of the section to the line of the key, where the file can be read."""
    file = Path(re.sub(r":\d+$", "", where))
    try:
        lines = limit_lines(file)
    except ConfigError:
        return where
    line = next((lines[loc[:n]] for n in range(len(loc), 0, -1) if loc[:n] in lines), None)
    return f"{file}:{line}" if line else where


def _section(raw: Mapping[str, Any]) -> bool:
    """Whether the file is a pipeline that embeds the limits, rather than the limits themselves."""
    return any(key in raw for key in ("gate", "stages", "task", "start"))


def limit_lines(path: Path) -> dict[Key, int]:
    """Line of each limit, by its key inside the gate section: ("accuracy", 0, "retention").

    Raises:
        ConfigError: the file cannot be read.
    """
    raw, lines = load_yaml(path)
    if not _section(raw):
        return lines
    return {key[1:]: line for key, line in lines.items() if len(key) > 1 and key[0] == "gate"}


def load_limits(path: Path) -> GateLimits:
    """Read limits from a gate.yaml (the section itself) or a pipeline.yaml (its `gate:` key).

    Raises:
        ConfigError: the file is missing, not YAML, or its limits are wrong.
    """
    raw, lines = load_yaml(path)
    if _section(raw):
        line = lines.get(("gate",))
        return parse_limits(raw.get("gate"), f"{path}:{line}" if line else str(path))
    return parse_limits(raw, str(path))

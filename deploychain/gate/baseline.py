"""The accepted baseline: one readable JSON file in the user's repository, made and changed only by `gate accept`.

It holds what a later run is compared with (metrics, per-sample values, layers, latency, sizes), what all of it was
measured with, and the history of accepted changes. Its digest covers everything else in the file, so a hand-edited
baseline is refused; it is a guard against accidents and quiet edits, and a review of the file in version control is
what guards against intent.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploychain.errors import ArtifactError, CapabilityError
from deploychain.records import Comparison, EngineReport, EvalReport, Latency, LayerVerdict, Provenance, to_json
from deploychain.verdicts import Entry

SCHEMA = "deploychain.baseline/2"
# Latency by stage alone, and no difference between independent runs and parts of one.
_OLD_SCHEMA = "deploychain.baseline/1"
_DIGITS = 6  # significant digits of every number in the file
_MAX_DECIMALS = 20_000  # per-sample numbers that are not 0 or 1 are kept up to this many: about 150 kB a series


class BaselineError(ArtifactError):
    """The baseline is missing, damaged, hand-edited or of another schema: nothing may be compared with it."""

    kind = "baseline"


@dataclass(frozen=True, slots=True)
class Series:
    """Per-sample values of one metric: ``bits`` (0/1, hex, first sample in the highest bit) or ``decimals``."""

    encoding: str
    count: int
    data: str
    mean: float
    deviation: float

    def values(self) -> tuple[float, ...] | None:
        """The values, or None where only their mean and deviation were kept."""
        if self.encoding == "bits":
            number = int(self.data or "0", 16)
            width = 4 * math.ceil(self.count / 4)
            return tuple(float(bit) for bit in f"{number:0{width}b}"[: self.count])
        if self.encoding == "decimals":
            return tuple(float(word) for word in self.data.split())
        return None


@dataclass(frozen=True, slots=True)
class BaselineStage:
    samples: int
    reference: str = ""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    per_class: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    agreement: float | None = None
    per_sample: Mapping[str, Series] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BaselineLayer:
    """A layer by what it computes: its ONNX nodes, or its name where the engine names none."""

    nodes: tuple[str, ...]
    compute: str | None
    verdict: str


@dataclass(frozen=True, slots=True)
class BaselineEngine:
    asked: str
    copies: int
    size_bytes: int | None = None
    layers: tuple[BaselineLayer, ...] = ()


@dataclass(frozen=True, slots=True)
class BaselineLatency:
    """Latency of one stage on one device."""

    p50_ms: float | None = None
    p99_ms: float | None = None
    repeats: tuple[float, ...] = ()
    parts: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Baseline:
    provenance: Provenance
    stages: Mapping[str, BaselineStage]
    engines: Mapping[str, BaselineEngine]
    latency: Mapping[str, Mapping[str, BaselineLatency]]  # stage -> device
    history: tuple[Entry, ...]
    directions: Mapping[str, str] = field(default_factory=dict)
    schema: str = SCHEMA


def _round(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def encode_series(values: Sequence[float | None]) -> Series | None:
    """Pack a per-sample series; None when a value is missing or not finite (a mean over the rest would be a lie)."""
    known = [v for v in values if v is not None and math.isfinite(v)]
    if not known or len(known) != len(values) or max(map(abs, known)) > 1e100:
        return None
    count = len(known)
    mean = math.fsum(known) / count
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in known) / max(1, count - 1))
    if all(v in (0.0, 1.0) for v in known):
        width = math.ceil(count / 4)
        bits = "".join("1" if v else "0" for v in known).ljust(4 * width, "0")
        return Series("bits", count, f"{int(bits, 2):0{width}x}", _round(mean), _round(deviation))
    data = " ".join(f"{v:.4g}" for v in known) if count <= _MAX_DECIMALS else ""
    return Series("decimals" if data else "summary", count, data, _round(mean), _round(deviation))


def layer_nodes(layer: Any) -> tuple[str, ...]:
    """What identifies a layer across builds: its ONNX nodes, else its own name."""
    return tuple(sorted(layer.onnx_nodes)) or (layer.name,)


def count_copies(engine: EngineReport) -> int:
    """Casts and reformats: those among the layers, or those of the summary where it knows of more."""
    listed = sum(layer.kind.value == "copy" for layer in engine.layers)
    return max(listed, engine.summary.copies if engine.summary is not None else 0)


def arithmetic(engine: EngineReport) -> list[Any]:
    """The layers that a precision judgement is about: compute and opaque ones."""
    return [layer for layer in engine.layers if layer.kind.value in ("compute", "opaque")]


def _stage(report: EvalReport) -> BaselineStage:
    series = {name: encode_series(values) for name, values in report.per_sample.items()}
    return BaselineStage(
        samples=report.samples,
        reference=report.reference,
        metrics={k: _round(v) for k, v in report.metrics.items()},
        per_class={m: {c: _round(v) for c, v in classes.items()} for m, classes in report.per_class.items()},
        agreement=_round(report.agreement),
        per_sample={k: s for k, s in series.items() if s is not None},
    )


def _engine(engine: EngineReport) -> BaselineEngine:
    layers = [
        BaselineLayer(layer_nodes(x), x.compute.value if x.compute else None, x.verdict.value)
        for x in arithmetic(engine)
    ]
    return BaselineEngine(
        asked=engine.asked.value,
        copies=count_copies(engine),
        size_bytes=engine.size_bytes,
        layers=tuple(sorted(layers, key=lambda x: (x.nodes, x.compute or "", x.verdict))),
    )


def key_values(comparison: Comparison) -> dict[str, float | None]:
    """The numbers of a run that the history keeps and plots: name -> value."""
    values: dict[str, float | None] = {}
    for report in comparison.evals:
        if report.ran:
            values |= {f"{report.stage}/{name}": _round(value) for name, value in report.metrics.items()}
            if report.agreement is not None:
                values[f"{report.stage}/agreement"] = _round(report.agreement)
    for engine in comparison.engines:
        if engine.built:
            fallback = sum(x.verdict is LayerVerdict.FALLBACK for x in arithmetic(engine))
            values[f"engine-{engine.name}/fallback layers"] = float(fallback)
            values[f"engine-{engine.name}/copies"] = float(count_copies(engine))
            if engine.size_bytes is not None:
                values[f"engine-{engine.name}/size bytes"] = float(engine.size_bytes)
    for latency in comparison.latency:
        # The device of the run keeps the short name; a second one must not hide it.
        where = "" if latency.device == comparison.provenance.device else f" on {latency.device or 'an unnamed device'}"
        values[f"{latency.stage}/p50 ms{where}"] = _round(latency.p50_ms)
    return values


def runs_and_parts(latency: Latency) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(medians of independent runs, medians of parts of one run).

    Device results written before `parts` existed hold those in ``repeats``; their ``how`` tells that it was one run.
    """
    if latency.repeats and not latency.parts and _ONE_RUN.search(latency.how):
        return (), latency.repeats
    return latency.repeats, latency.parts


_ONE_RUN = re.compile(r" of \d+ inferences at .*, \d+ ms warm-up")


def _latency(comparison: Comparison) -> dict[str, dict[str, BaselineLatency]]:
    made: dict[str, dict[str, BaselineLatency]] = {}
    for x in comparison.latency:
        runs, parts = (tuple(_round(v) for v in values) for values in runs_and_parts(x))
        made.setdefault(x.stage, {})[x.device] = BaselineLatency(_round(x.p50_ms), _round(x.p99_ms), runs, parts)
    return made


def from_comparison(comparison: Comparison, history: tuple[Entry, ...] = ()) -> Baseline:
    """A comparison as a baseline. Stages that did not run and engines that were not built are left out."""
    return Baseline(
        provenance=comparison.provenance,
        stages={r.stage: _stage(r) for r in comparison.evals if r.ran},
        engines={e.name: _engine(e) for e in comparison.engines if e.built},
        latency=_latency(comparison),
        history=history,
        directions=dict(comparison.directions),
    )


def _digest(document: Mapping[str, Any]) -> str:
    content = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _pretty(value: Any, indent: int = 0) -> str:
    """JSON with one short record a line: small in a diff, readable in a review."""
    flat = json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
    if not isinstance(value, (dict, list)) or not value or (indent > 0 and len(flat) + indent <= 110):
        return flat
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        body = ",\n".join(
            f"{pad}{json.dumps(k, ensure_ascii=False)}: {_pretty(v, indent + 1)}" for k, v in sorted(value.items())
        )
        return "{\n" + body + "\n" + " " * indent + "}"
    body = ",\n".join(pad + _pretty(v, indent + 1) for v in value)
    return "[\n" + body + "\n" + " " * indent + "]"


def dumps(baseline: Baseline) -> str:
    """The text of the file."""
    document = to_json(baseline)
    document["digest"] = _digest(document)
    return _pretty(document) + "\n"


def save(baseline: Baseline, path: Path) -> None:
    """Write the file whole or not at all.

    Raises:
        CapabilityError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(dumps(baseline))
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CapabilityError(f"cannot write the baseline: {error.strerror}", where=str(path)) from None


def load(path: Path) -> Baseline:
    """Read and verify a baseline.

    Raises:
        BaselineError: missing, not JSON, of another schema, hand-edited, or not matching its schema.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BaselineError(
            "there is no baseline",
            where=str(path),
            remedy='accept one with `deploychain gate accept RUN --reason "first baseline"` and commit it',
        ) from None
    except OSError as error:
        raise BaselineError(f"cannot read the baseline: {error.strerror}", where=str(path)) from None
    except (ValueError, RecursionError) as error:
        raise BaselineError(f"the baseline is not JSON: {error}", where=str(path), remedy=_RESTORE) from None
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if schema not in (SCHEMA, _OLD_SCHEMA):
        raise BaselineError(
            f"the baseline's schema is {schema!r}, this version reads {SCHEMA!r}",
            where=str(path),
            remedy="use the deploychain version that wrote it",
        )
    try:
        digest = _digest(raw)
    except ValueError:
        digest = "not a finite number"
    if raw.get("digest") != digest:
        raise BaselineError(
            "the baseline was edited by hand: its content does not match its digest", where=str(path), remedy=_RESTORE
        )
    if schema == _OLD_SCHEMA:
        raw = {**raw, "schema": SCHEMA, "latency": _by_device(raw.get("latency"))}
    try:
        baseline = TypeAdapter(Baseline).validate_python({k: v for k, v in raw.items() if k != "digest"})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise BaselineError(f"{key}: {first['msg']}", where=str(path), remedy=_RESTORE) from None
    if not baseline.history:
        raise BaselineError("nobody accepted the baseline: its history is empty", where=str(path), remedy=_RESTORE)
    return baseline


def _by_device(latency: Any) -> Any:
    """The latencies of the older schema. Its repeats may be parts of one run: nothing said which, so they count as one.

    What has another form is left as it is: the validation names it.
    """
    if not isinstance(latency, dict) or not all(isinstance(x, dict) and "device" in x for x in latency.values()):
        return latency
    return {
        stage: {str(x["device"]): {"p50_ms": x.get("p50_ms"), "p99_ms": x.get("p99_ms"), "parts": x.get("repeats", ())}}
        for stage, x in latency.items()
    }


_RESTORE = "restore it from version control, and change it only with `deploychain gate accept`"

"""Evidence as one line, as JSON and as a table. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from deploychain.engine.model import Listing, Profile, Run, Stat, Warned
from deploychain.errors import CapabilityError
from deploychain.precision import Precision
from deploychain.records import LAYERS_SCHEMA, LayerRecord, LayerVerdict
from deploychain.records import to_json as plain

if TYPE_CHECKING:
    from deploychain.engine.evidence import Evidence


def headline(evidence: Evidence) -> str:
    """``FP16 asked: 88.8 % of the time and 41 of 46 layers run in FP16; 3 certain fallbacks (9.1 % of the time)``"""
    summary = evidence.summary
    if summary is None:
        if evidence.listing is not None:
            return "The engine lists no layers: precision is unknown."
        return _without_layers(evidence)
    total = summary.compute_layers
    cut = "" if evidence.complete else "INCOMPLETE, the listing is cut: "
    if evidence.listing is not None and evidence.listing.names_only:
        return f"{cut}{summary.layers} layers by name only: {summary.unknown} cannot be judged."
    if total == 0:
        return f"{cut}None of the {summary.layers} listed layers does arithmetic: there is nothing to judge."
    if evidence.asked is None:
        typed = any(run.strongly_typed for run in evidence.runs) or (
            evidence.listing is not None and evidence.listing.source == "builder"
        )
        more = "strongly typed, so the graph asks: use --model" if typed else "use --asked"
        return f"{cut}Nothing says which precision was asked: {_computes(evidence.layers)} of {total} layers; {more}."
    word = evidence.asked.value.upper()
    by = f"{word} assumed asked (the engine uses it)" if evidence.asked_from.startswith("assumed") else f"{word} asked"
    share = summary.time_share_as_asked
    time = f"{share:.1%} of the time and ".replace("%", " %") if share is not None else ""
    parts = [f"{cut}{by}: {time}{summary.as_asked} of {total} layers run in {word}"]
    verdicts = []
    for verdict, one, many in (
        (LayerVerdict.FALLBACK, "certain fallback", "certain fallbacks"),
        (LayerVerdict.DEMOTED, "demoted", "demoted"),
        (LayerVerdict.POSSIBLE, "possible fallback", "possible fallbacks"),
        (LayerVerdict.EXPECTED, "expected", "expected"),
    ):
        layers = [layer for layer in arithmetic(evidence.layers) if layer.verdict is verdict]
        if layers or (verdict is LayerVerdict.FALLBACK and not summary.unknown and evidence.complete):
            text = f"{len(layers)} {one if len(layers) == 1 else many}"
            if verdict is LayerVerdict.EXPECTED:
                found = {layer.compute for layer in layers}
                only = next(iter(found)) if len(found) == 1 else None
                text += f" in {only.value.upper()}" if only is not None else " otherwise"
            verdicts.append(text + _time_of(layers, evidence))
    if summary.unknown:
        layers = [layer for layer in arithmetic(evidence.layers) if layer.verdict is LayerVerdict.UNKNOWN]
        verdicts.append(f"{summary.unknown} cannot be judged{_time_of(layers, evidence)}")
    tf32 = sum(layer.compute is Precision.TF32 for layer in evidence.layers)
    if tf32 and evidence.asked is Precision.FP32:
        verdicts.append(f"{tf32} with TF32 math")
    return "; ".join([*parts, ", ".join(verdicts)]) if verdicts else parts[0]


def _without_layers(evidence: Evidence) -> str:
    kinds = {reading.kind for reading in evidence.inputs if reading.kind not in ("other", "outputs")}
    if not evidence.readable:
        return "Nothing readable."
    if evidence.runs and evidence.passed is False:
        statuses = [run.status for run in evidence.runs] + [s for r in evidence.inputs for s in r.omitted]
        word = "failed" if next(s for s in statuses if s in ("failed", "incomplete")) == "failed" else "is incomplete"
        return f"The run {word}; no layers are listed: precision is unknown."
    words = ", ".join(sorted(kinds)) or "nothing"
    return f"No layers are listed ({words}): precision is unknown. Add --exportLayerInfo, or a verbose build log."


def _time_of(layers: Iterable[LayerRecord], evidence: Evidence) -> str:
    shares = [layer.share for layer in layers]
    if not shares or evidence.joined is None or all(share is None for share in shares):
        return ""
    return f" ({sum(share or 0.0 for share in shares):.1%} of the time)".replace("%", " %")


def _computes(layers: Iterable[LayerRecord]) -> str:
    counts: dict[str, int] = {}
    for layer in arithmetic(layers):
        word = layer.compute.value.upper() if layer.compute is not None else "unknown"
        counts[word] = counts.get(word, 0) + 1
    return ", ".join(f"{n} {word}" for word, n in sorted(counts.items(), key=lambda item: -item[1]))


def arithmetic(layers: Iterable[LayerRecord]) -> list[LayerRecord]:
    """The layers that are judged."""
    from deploychain.engine.classify import ARITHMETIC

    return [layer for layer in layers if layer.kind in ARITHMETIC]


# -- JSON ---------------------------------------------------------------------------------------------------------


def _stat(stat: Stat | None) -> dict[str, Any] | None:
    if stat is None:
        return None
    return {
        "min": stat.min,
        "max": stat.max,
        "mean": stat.mean,
        "median": stat.median,
        "p99": stat.p99,
        "percentiles": {f"{p:g}": value for p, value in stat.percentiles.items()},
    }


def _warning(warned: Warned) -> dict[str, Any]:
    return {
        "kind": warned.kind,
        "text": warned.text,
        "layer": warned.layer,
        "level": warned.level,
        "count": warned.count,
        "meaning": warned.meaning,
        "serious": warned.serious,
    }


def _listing(listing: Listing) -> dict[str, Any]:
    types: dict[str, int] = {}
    for layer in listing.layers:
        types[layer.layer_type] = types.get(layer.layer_type, 0) + 1
    return {"source": listing.source, "layers": len(listing.layers), "types": types, "complete": listing.complete}


def _run(run: Run) -> dict[str, Any]:
    profile = run.profile
    return {
        "path": run.path,
        "status": run.status,
        "tool": run.tool or None,
        "tensorrt": run.tensorrt,
        "build": run.build,
        "command": run.command or None,
        "device": run.device,
        "compute_capability": run.compute_capability,
        "throughput_qps": run.throughput_qps,
        "latency_ms": _stat(run.latency),
        "gpu_ms": _stat(run.gpu),
        "summary_ms": {label: _stat(stat) for label, stat in run.stats.items()},
        "asked": run.asked.value if run.asked else None,
        "allowed": sorted(p.value for p in run.allowed),
        "strongly_typed": run.strongly_typed,
        "pinned": {name: p.value for name, p in run.pinned.items()},
        "profile": None
        if profile is None
        else {
            "iterations": profile.iterations,
            "rows": profile.rows,
            "total_ms": profile.printed_total_ms if profile.printed_total_ms is not None else profile.sum_ms,
            "complete": profile.complete,
            "top": top_rows(profile),
        },
        "listings": [_listing(listing) for listing in run.listings],
        "dla_layers": list(run.dla_layers),
        "gpu_layers": list(run.gpu_layers),
        "warnings_captured": run.stderr_seen,
        "warnings": [_warning(w) for w in run.warnings],
        "options": run.options,
        "notes": list(run.notes),
        "problems": list(run.problems),
        "facts": run.facts,
    }


def top_rows(profile: Profile, count: int = 10) -> list[dict[str, Any]]:
    """The slowest rows of a profile, for files that come without a listing of layers."""
    total = profile.sum_ms
    order = sorted(range(profile.rows), key=lambda i: -_zero(profile.total_ms[i]))[:count]
    return [
        {
            "name": profile.names[i],
            "total_ms": profile.total_ms[i],
            "mean_ms": profile.mean_ms[i],
            "share": _zero(profile.total_ms[i]) / total if total > 0 else None,
        }
        for i in order
    ]


def _zero(value: float) -> float:
    return value if value == value else 0.0


def layer_json(layer: LayerRecord) -> dict[str, Any]:
    """One entry of ``layers``."""
    return {
        "name": layer.name,
        "type": layer.layer_type,
        "kind": layer.kind.value,
        "storage": {
            "inputs": [t.dtype.value if t.dtype else None for t in layer.inputs],
            "outputs": [t.dtype.value if t.dtype else None for t in layer.outputs],
            "weights": layer.weights.value if layer.weights else None,
        },
        "compute": layer.compute.value if layer.compute else None,
        "evidence": layer.evidence.value,
        "asked": layer.asked.value if layer.asked else None,
        "verdict": layer.verdict.value,
        "reason": layer.reason or None,
        "time_ms": layer.time_ms,
        "share": layer.share,
        "onnx_nodes": list(layer.onnx_nodes),
        "nodes_from": layer.nodes_from or None,
        "module": layer.module,
        "tactic": layer.tactic,
        "origin": layer.origin,
        "profile": layer.profile,
    }


def to_json(evidence: Evidence) -> dict[str, Any]:
    """The document of ``deploychain layers --json``."""
    summary = evidence.summary
    document = {
        "schema": LAYERS_SCHEMA,
        "headline": evidence.headline(),
        "passed": evidence.passed,
        "asked": evidence.asked.value if evidence.asked else None,
        "asked_from": evidence.asked_from or None,
        "inputs": [
            {"path": reading.path, "kind": reading.kind, "problem": reading.problem, **_contents(reading)}
            for reading in evidence.inputs
        ],
        "runs": [_run(run) for run in evidence.runs],
        "layers": [],
        "summary": None
        if summary is None
        else {
            "layers": summary.layers,
            "compute_layers": summary.compute_layers,
            "as_asked": summary.as_asked,
            "fallback": summary.fallback,
            "demoted": summary.demoted,
            "possible": summary.possible,
            "expected": summary.expected,
            "unknown": summary.unknown,
            "copies": summary.copies,
            "time_share_as_asked": summary.time_share_as_asked,
            "complete": evidence.complete,
        },
        "join": None
        if evidence.joined is None
        else {
            "how": evidence.joined.how,
            "unmatched_rows": list(evidence.joined.unmatched_rows),
            "unmatched_layers": list(evidence.joined.unmatched_layers),
        },
        "optimization_profiles": {str(p): n for p, n in sorted(evidence.profiles.items())},
        "notes": list(evidence.notes),
        "problems": [{"path": p.path or None, "text": p.text} for p in evidence.problems],
    }
    made: dict[str, Any] = plain(document)
    made["layers"] = [layer_json(layer) for layer in evidence.layers]  # JSON types already: not copied once more
    return made


def _contents(reading: Any) -> dict[str, Any]:
    """What an input that is no run holds: a profile, query times, another tool's results."""
    found: dict[str, Any] = {}
    if reading.profile is not None:
        profile = reading.profile
        found["profile"] = {
            "iterations": profile.iterations,
            "rows": profile.rows,
            "total_ms": profile.sum_ms,
            "mean_sum_ms": sum(v for v in profile.mean_ms if v == v),
            "zero_rows": sum(v == 0 for v in profile.total_ms),
            "complete": profile.complete,
            "top": top_rows(profile),
        }
    if reading.times is not None:
        times = reading.times
        found["times"] = {
            "queries": times.queries,
            "keys": list(times.keys),
            "gpu_ms": _stat(times.gpu),
            "latency_ms": _stat(times.latency),
        }
    if reading.listing is not None:
        found["listing"] = _listing(reading.listing)
    if reading.facts:
        found["facts"] = reading.facts
    return found


_COLUMNS = (
    *("name", "type", "kind", "inputs", "outputs", "weights", "compute", "evidence", "asked", "verdict", "reason"),
    *("time_ms", "share", "onnx_nodes", "module", "tactic"),
)


def rows(evidence: Evidence) -> list[dict[str, Any]]:
    """One flat dictionary per layer."""
    made = []
    for layer in evidence.layers:
        entry = layer_json(layer)
        entry.update(entry.pop("storage"))
        made.append({key: entry[key] for key in _COLUMNS})
    return made


def to_dataframe(evidence: Evidence) -> Any:
    """One row per layer as a `pandas.DataFrame`."""
    try:
        import pandas
    except ImportError:
        raise CapabilityError("pandas is not installed", remedy="pip install pandas") from None
    return pandas.DataFrame(rows(evidence), columns=list(_COLUMNS))

"""A healthy run made of numbers, and ways to damage it. Every count in it is known, so verdicts can be worked out."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from deploychain.precision import Precision
from deploychain.records import (
    COMPARISON_SCHEMA,
    Comparison,
    EngineReport,
    EvalReport,
    EvidenceSource,
    Latency,
    LayerKind,
    LayerRecord,
    LayerSummary,
    LayerVerdict,
    Provenance,
    to_json,
)

SAMPLES = 5000
CLASSES = 10
DEVICE = "Orin NX 16GB"
NODES = ("stem", "b1/conv1", "b1/conv2", "b2/conv1", "b2/conv2", "head/fc")


def labels() -> list[int]:
    return [i % CLASSES for i in range(SAMPLES)]


def parent_correct() -> list[float]:
    """97 % right, the wrong ones spread evenly over the classes: in each class 485 of 500 are right."""
    return [0.0 if (i // CLASSES) % 100 in (0, 33, 66) else 1.0 for i in range(SAMPLES)]


def changed(correct: Sequence[float], lost: int, gained: int = 0, only_class: int | None = None) -> list[float]:
    """Turn `lost` right answers wrong and `gained` wrong ones right, spread evenly (or within one class)."""
    made = list(correct)
    for want, count in ((1.0, lost), (0.0, gained)):
        places = [i for i, v in enumerate(correct) if v == want and only_class in (None, i % CLASSES)]
        step = len(places) / max(count, 1)
        for k in range(count):
            made[places[int(k * step)]] = 1.0 - want
    return made


def report(stage: str, correct: Sequence[float], reference: str = "weights") -> EvalReport:
    values = np.asarray(correct)
    names = np.asarray(labels())
    base = np.asarray(parent_correct())
    return EvalReport(
        stage=stage,
        ran=True,
        how="synthetic",
        reference=reference,
        samples=len(correct),
        metrics={"top1": float(values.mean())},
        per_sample={"top1": tuple(float(v) for v in values)},
        per_class={"top1": {str(c): float(values[names == c].mean()) for c in range(CLASSES)}},
        sample_classes=tuple(str(v) for v in labels()),
        agreement=float((values == base).mean()),
        non_finite=0,
        max_abs_error=0.01,
        relative_error=0.001,
        cosine=0.99999,
        snr_db=60.0,
        worst_samples=(3, 17),
    )


def layer(node: str, asked: Precision, *, compute: Precision | None = None, **fields: object) -> LayerRecord:
    settings: dict[str, object] = {
        "name": f"{node} + {node}/relu",
        "layer_type": "conv",
        "kind": LayerKind.COMPUTE,
        "compute": compute or asked,
        "evidence": EvidenceSource.TACTIC,
        "asked": asked,
        "verdict": LayerVerdict.AS_ASKED,
        "time_ms": 0.1,
        "share": 1 / len(NODES),
        "onnx_nodes": (node, f"{node}/relu"),
        "module": "net." + node.replace("/", "."),
        "source": "model.py:42",
    }
    return LayerRecord(**{**settings, **fields})  # type: ignore[arg-type]


def summarised(engine: EngineReport) -> EngineReport:
    count = {v: sum(x.verdict is v for x in engine.layers if x.kind is LayerKind.COMPUTE) for v in LayerVerdict}
    total = sum(count.values())
    summary = LayerSummary(
        layers=len(engine.layers),
        compute_layers=total,
        as_asked=count[LayerVerdict.AS_ASKED],
        fallback=count[LayerVerdict.FALLBACK],
        demoted=count[LayerVerdict.DEMOTED],
        possible=count[LayerVerdict.POSSIBLE],
        expected=count[LayerVerdict.EXPECTED],
        unknown=count[LayerVerdict.UNKNOWN],
        copies=sum(x.kind is LayerKind.COPY for x in engine.layers),
    )
    return dataclasses.replace(engine, summary=summary)


def copy_layer(name: str = "Reformatting CopyNode for Input Tensor 0") -> LayerRecord:
    return LayerRecord(name=name, layer_type="Reformat", kind=LayerKind.COPY, origin="REFORMAT")


def engine(name: str, asked: Precision) -> EngineReport:
    layers = (*(layer(node, asked) for node in NODES), copy_layer())
    made = EngineReport(
        name=name, asked=asked, built=True, backend="tensorrt 10.3.0.30", size_bytes=1_000_000, layers=layers
    )
    return summarised(made)


def healthy() -> Comparison:
    """FP16 and INT8 as they should be: 2 and 40 of 5000 decisions changed, half of them for the better."""
    base = parent_correct()
    fp16, int8 = changed(base, 1, 1), changed(base, 20, 20)
    return Comparison(
        schema=COMPARISON_SCHEMA,
        provenance=Provenance(
            pipeline="demo",
            data_sha256="a" * 64,
            samples=SAMPLES,
            device=DEVICE,
            tensorrt="10.3.0.30",
            versions={"torch": "2.9.0", "deploychain": "0.1.0"},
            flags={"timing_cache": "on"},
            created="2026-05-01T10:00:00Z",
        ),
        evals=(
            report("weights", base, ""),
            report("onnx-fp32", base),
            report("onnx-fp16", fp16),
            report("onnx-int8", int8),
            report("engine-fp16", fp16),
            report("engine-int8", int8),
        ),
        engines=(engine("fp16", Precision.FP16), engine("int8", Precision.INT8)),
        latency=(
            latency("engine-fp16", 2.0),
            latency("engine-int8", 1.2),
        ),
        directions={"top1": "higher"},
    )


def latency(stage: str, p50: float, factor: float = 1.0, device: str = DEVICE) -> Latency:
    repeats = tuple(p50 * factor * (1 + e) for e in (-0.01, -0.005, 0.0, 0.005, 0.01))
    return Latency(stage, device, p50_ms=p50 * factor, p99_ms=p50 * factor * 1.2, mean_ms=p50 * factor, repeats=repeats)


# --- ways to damage

Change = Callable[[Comparison], Comparison]


def stage(name: str, make: Callable[[EvalReport], EvalReport | None]) -> Change:
    def apply(comparison: Comparison) -> Comparison:
        made = [make(r) if r.stage == name else r for r in comparison.evals]
        return dataclasses.replace(comparison, evals=tuple(r for r in made if r is not None))

    return apply


def lose(name: str, lost: int, gained: int = 0, only_class: int | None = None) -> Change:
    return stage(name, lambda r: report(name, changed(r.per_sample["top1"], lost, gained, only_class), r.reference))


def fields(name: str, **values: object) -> Change:
    return stage(name, lambda r: dataclasses.replace(r, **values))


def on_engine(name: str, make: Callable[[EngineReport], EngineReport | None]) -> Change:
    def apply(comparison: Comparison) -> Comparison:
        made = [make(e) if e.name == name else e for e in comparison.engines]
        return dataclasses.replace(comparison, engines=tuple(e for e in made if e is not None))

    return apply


def relayer(name: str, index: int, **values: object) -> Change:
    """Change one layer of an engine."""

    def make(e: EngineReport) -> EngineReport:
        layers = list(e.layers)
        layers[index] = dataclasses.replace(layers[index], **values)
        return summarised(dataclasses.replace(e, layers=tuple(layers)))

    return on_engine(name, make)


def add_layers(name: str, *layers: LayerRecord) -> Change:
    return on_engine(name, lambda e: summarised(dataclasses.replace(e, layers=(*e.layers, *layers))))


def slower(factor: float, stage_name: str = "engine-fp16", **values: object) -> Change:
    def apply(comparison: Comparison) -> Comparison:
        made = [
            dataclasses.replace(latency(x.stage, 2.0, factor), **values) if x.stage == stage_name else x
            for x in comparison.latency
        ]
        return dataclasses.replace(comparison, latency=tuple(made))

    return apply


def provenance(**values: object) -> Change:
    return lambda c: dataclasses.replace(c, provenance=dataclasses.replace(c.provenance, **values))


def both(*changes: Change) -> Change:
    def apply(comparison: Comparison) -> Comparison:
        for change in changes:
            comparison = change(comparison)
        return comparison

    return apply


def same(comparison: Comparison) -> Comparison:
    return comparison


def write(comparison: Comparison, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "comparison.json").write_text(json.dumps(to_json(comparison)), encoding="utf-8")
    return folder

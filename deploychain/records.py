"""The typed records that travel between readers, comparison, gate and report.

Plain frozen dataclasses: cheap to make by the ten thousand, no framework at import. `to_json` turns any of them
into JSON types; `pydantic.TypeAdapter` validates them where a file comes from outside (see `load_comparison`).
None always means "not known", never zero.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from deploychain.errors import ArtifactError
from deploychain.precision import Precision

LAYERS_SCHEMA = "deploychain.layers/1"
COMPARISON_SCHEMA = "deploychain.comparison/1"
RUN_SCHEMA = "deploychain.run/1"
GATE_SCHEMA = "deploychain.gate/1"
PLAN_SCHEMA = "deploychain.plan/1"
EVALS_SCHEMA = "deploychain.eval-reports/1"


class LayerKind(str, Enum):
    """What a layer does, as far as a precision judgement cares."""

    COMPUTE = "compute"
    COPY = "copy"  # reformat, cast, quantise/dequantise copies
    DATA_MOVEMENT = "data-movement"  # shuffle, slice, concat: moves values, does no arithmetic
    INTEGER = "integer"  # all tensors are indices, shapes or masks
    OPAQUE = "opaque"  # Myelin, ForeignNode, DLA subgraph, plugin: only its borders are known
    HELPER = "helper"  # constants, no-ops, shape calls, stream synchronisation


class EvidenceSource(str, Enum):
    """What the compute precision of a layer was read from, best first."""

    WEIGHTS = "weights"
    TACTIC = "tactic"
    TENSORS = "tensors"
    NETWORK = "network"
    NONE = "none"


class LayerVerdict(str, Enum):
    """Asked against built."""

    AS_ASKED = "as-asked"
    FALLBACK = "fallback"  # certainly higher than asked
    DEMOTED = "demoted"  # certainly lower than asked
    POSSIBLE = "possible"  # opaque or mixed: may hold a fallback
    EXPECTED = "expected"  # higher than asked, and meant to be: network edge, pinned by the user or the plan
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """One tensor at a layer's border, as the engine names it."""

    name: str
    dtype: Precision | None
    dims: tuple[int, ...] | None = None
    format: str = ""  # as printed


@dataclass(frozen=True, slots=True)
class LayerRecord:
    """One layer of a built engine: what it is, what it stores, what it computes in, and how that is known."""

    name: str
    layer_type: str
    kind: LayerKind
    inputs: tuple[TensorRecord, ...] = ()
    outputs: tuple[TensorRecord, ...] = ()
    weights: Precision | None = None
    tactic: str | None = None
    compute: Precision | None = None
    evidence: EvidenceSource = EvidenceSource.NONE
    asked: Precision | None = None
    verdict: LayerVerdict = LayerVerdict.UNKNOWN
    reason: str = ""  # why this verdict, one sentence
    time_ms: float | None = None  # mean per inference
    share: float | None = None  # 0..1 of the summed layer time
    onnx_nodes: tuple[str, ...] = ()
    module: str | None = None
    origin: str | None = None  # REFORMAT, QDQ, ...
    metadata: str = ""
    profile: int | None = None  # optimisation profile, where the name says so
    source: str = ""  # file:line of the module's code, where known
    constants: tuple[TensorRecord, ...] = ()  # weights and scalars that the builder lists apart from the inputs
    parameter_type: str = ""  # the network layer kind: Convolution, Pooling, Reformat, ...
    stream: int | None = None
    nodes_from: str = ""  # what onnx_nodes was read from: "metadata", "model", or "name" (a guess)
    extra: Mapping[str, Any] = field(default_factory=dict)  # keys that this version does not interpret, as printed


@dataclass(frozen=True, slots=True)
class LayerSummary:
    """Counts over the layers that do arithmetic. They add up: every compute or opaque layer is in one of them."""

    layers: int
    compute_layers: int
    as_asked: int
    fallback: int
    demoted: int
    possible: int
    expected: int
    unknown: int
    copies: int = 0  # reformats and casts
    time_share_as_asked: float | None = None

    @property
    def total(self) -> int:
        return self.compute_layers


@dataclass(frozen=True, slots=True)
class EvalReport:
    """One artefact run over the test data, measured against the run's FP32 reference.

    ``stage`` is one of train-fp32, train-amp, weights, qat, onnx-fp32, onnx-fp16, onnx-int8, engine-fp32,
    engine-fp16, engine-int8 (other tools may use names of their own). Errors are over all outputs against
    ``reference``; ``agreement`` is the share of samples whose decision (arg-max) equals the reference's.
    """

    stage: str
    ran: bool
    reason: str = ""  # why it did not run
    how: str = ""  # what executed it: "torch eager, CPU", "onnxruntime CPU, FP16 rounding emulated", ...
    reference: str = ""  # the stage that errors are measured against
    samples: int = 0
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    per_sample: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)  # for paired bootstrap; None: NaN
    per_class: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)  # metric -> class -> value
    agreement: float | None = None
    max_abs_error: float | None = None
    mean_abs_error: float | None = None
    relative_error: float | None = None  # ||out - ref|| / ||ref||
    cosine: float | None = None
    snr_db: float | None = None  # 10 log10(sum ref^2 / sum (out - ref)^2); inf when bit-equal is written null
    exact: bool | None = None  # every output bit-equal to the reference
    non_finite: int | None = None  # NaN and inf values in the outputs
    worst_samples: tuple[int, ...] = ()
    seconds: float | None = None
    artefact_sha256: str | None = None
    sample_classes: tuple[str, ...] = ()  # class of each sample, in the order of per_sample: paired per-class judgement
    per_output: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)  # output -> statistic -> value
    notes: tuple[str, ...] = ()  # what limits these numbers, a sentence each


@dataclass(frozen=True, slots=True)
class EngineReport:
    """One built engine and the judgement of its layers."""

    name: str  # fp32, fp16, int8
    asked: Precision
    built: bool
    reason: str = ""  # why it was not built, with node names
    backend: str = ""  # "tensorrt_rtx 1.7.1.116"
    compute_capability: str = ""
    size_bytes: int | None = None
    build_seconds: float | None = None
    layers: tuple[LayerRecord, ...] = ()
    summary: LayerSummary | None = None
    problems: tuple[str, ...] = ()
    complete: bool = True  # False: the listing of layers is cut or was not read whole; what is not in it is not known


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a comparison was measured with: the fields that decide whether two of them may be compared."""

    pipeline: str = ""
    data_sha256: str | None = None  # of the test inputs and targets
    samples: int | None = None
    device: str = ""
    tensorrt: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    created: str = ""  # ISO 8601, UTC


@dataclass(frozen=True, slots=True)
class Latency:
    """Latency of one engine on one device, milliseconds."""

    stage: str
    device: str
    p50_ms: float | None = None
    p99_ms: float | None = None
    mean_ms: float | None = None
    repeats: tuple[float, ...] = ()  # medians of independent builds or runs
    how: str = ""
    parts: tuple[float, ...] = ()  # medians of parts of one run, in order: they say nothing of another build


@dataclass(frozen=True, slots=True)
class Training:
    """The loss scale of the training that made the weights, and the steps that it cost."""

    precision: str  # fp16-mixed, bf16-mixed, fp32
    steps: int  # optimizer steps, skipped ones included
    scale_history: tuple[tuple[int, float], ...] = ()  # (step, new loss scale), changes only; empty without a scaler
    skipped: tuple[int, ...] = ()  # steps whose gradients were not finite


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything measured in one run. `compare` writes it; the gate and the report read it."""

    schema: str
    provenance: Provenance
    evals: tuple[EvalReport, ...] = ()
    engines: tuple[EngineReport, ...] = ()
    latency: tuple[Latency, ...] = ()
    directions: Mapping[str, Literal["higher", "lower"]] = field(default_factory=dict)  # which way is better
    notes: tuple[str, ...] = ()
    training: Training | None = None  # shown, never judged


def to_json(value: Any) -> Any:
    """Turn records, enums, paths and mappings into JSON types.

    NaN and infinities become None: JSON has no word for them, and a reader must not take them for numbers.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json(v) for v in value]
    if isinstance(value, Path):
        return str(value)
    return value


def load_comparison(path: Path) -> Comparison:
    """Read and validate a ``comparison.json``.

    Raises:
        ArtifactError: the file is missing, not JSON, of a newer schema, or breaks the schema (the key is named).
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArtifactError(
            f"cannot read the comparison: {error.strerror}",
            where=str(path),
            remedy="run `deploychain run` first",
        ) from None
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"not valid JSON: {error}", where=str(path), remedy="run the compare stage again") from None
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if schema != COMPARISON_SCHEMA:
        raise ArtifactError(
            f"schema is {schema!r}, this version reads {COMPARISON_SCHEMA!r}",
            where=str(path),
            remedy="use the deploychain version that wrote it, or run the compare stage again",
        )
    try:
        return TypeAdapter(Comparison).validate_python(raw)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ArtifactError(
            f"{key}: {first['msg']}", where=str(path), remedy="see `deploychain schema comparison`"
        ) from None

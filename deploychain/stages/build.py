"""Stage `build`: one engine per precision, and everything that the builder said about it as evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deploychain.errors import CapabilityError, StageError
from deploychain.job import Job, Stage, StageResult
from deploychain.settings import BuildSettings

if TYPE_CHECKING:
    from deploychain.backends.tensorrt_build import Build

EVIDENCE_SCHEMA = "deploychain.engine-evidence/1"
EVIDENCE_FILE = "engine-evidence.json"
# The model that each engine is built from; the Q/DQ export stands in for the planned INT8 model.
_MODELS = {"fp32": ("onnx-fp32",), "fp16": ("onnx-fp16",), "int8": ("onnx-int8", "onnx-qat")}


def run(job: Job[BuildSettings]) -> StageResult:
    """Build the engines that the settings name, each in a process of its own.

    An engine that cannot be built is told with its node and the others still build.

    Raises:
        CapabilityError: no TensorRT is here, or it does not know the compute capability.
        ConfigError: the shapes do not fit the model.
        StageError: no engine could be built.
    """
    from deploychain.backends import tensorrt_flavour
    from deploychain.backends.tensorrt_build import BuildRequest, build_engine

    settings = job.settings
    flavour = tensorrt_flavour.choose(settings.backend)
    target = settings.compute_capability if flavour == "tensorrt_rtx" else None
    examples, axis_sizes = _real_sizes(job)
    rows: list[dict[str, Any]] = []
    artifacts: dict[str, str] = {}
    for name in settings.engines:
        kind = next((k for k in _MODELS[name] if job.has(k)), None)
        if kind is None:
            reason = f"the chain has no {_MODELS[name][0]} model"
            job.note(f"engine {name} not built: {reason}")
            rows.append({"name": name, "asked": name, "built": False, "reason": reason})
            continue
        if kind == "onnx-qat":
            job.note("engine int8 is built from the Q/DQ export: without the plan stage the rest of it is FP32")
        request = BuildRequest(
            flavour=flavour,
            onnx=job.input(kind).resolve(),
            engine=(job.out / f"{name}.engine").resolve(),
            compute_capability=target,
            shapes={k: v.model_dump() for k, v in settings.shapes.items()},
            opt_batch=settings.opt_batch,
            examples=examples,
            axis_sizes=axis_sizes,
        )
        with job.progress(f"build {name}") as progress:
            build = build_engine(
                request,
                job.scratch.resolve(),
                timeout=settings.timeout_minutes * 60,
                on_progress=lambda phase, done, total, seconds, memory: progress.update(
                    done, total or None, phase=phase, memory=f"{memory} MiB"
                ),
            )
        advice = tensorrt_flavour.advice(build)
        if build.kind == "capability":
            raise CapabilityError(build.reason, where="build.compute_capability", remedy=advice)
        rows.append(_evidence(name, build, advice))
        if build.built:
            artifacts[f"engine-{name}"] = request.engine.name
        else:
            job.note(f"engine {name} not built: {build.reason}" + (f" ({advice})" if advice else ""))
        for line in (*build.notes, *tensorrt_flavour.caveats(build)):
            job.note(f"engine {name}: {line}")
    if not artifacts:
        raise StageError(
            "no engine could be built: " + "; ".join(f"{row['name']}: {row['reason']}" for row in rows),
            where=job.stage,
            remedy=next((row["remedy"] for row in rows if row.get("remedy")), ""),
        )
    text = json.dumps({"schema": EVIDENCE_SCHEMA, "engines": rows}, indent=1, ensure_ascii=False)
    (job.out / EVIDENCE_FILE).write_text(text, encoding="utf-8")
    return StageResult({**artifacts, "engine-evidence": EVIDENCE_FILE}, _summary(rows))


def _evidence(name: str, build: Build, advice: str) -> dict[str, Any]:
    return {
        "name": name,
        "asked": name,
        "built": build.built,
        "kind": build.kind,
        "reason": build.reason,
        "remedy": advice,
        "problems": [dict(p) for p in build.problems],
        "backend": build.flavour,
        "version": build.version,
        "compute_capability": build.compute_capability,
        "seconds": round(build.seconds, 3),
        "build_seconds": build.build_seconds,
        "size_bytes": build.size_bytes,
        "peak_memory_mib": build.peak_memory_mib,
        "profiles": build.profiles,
        "settings": dict(build.settings),
        "messages": [dict(m) for m in build.messages],
        "network": [dict(layer) for layer in build.network],
        "text": build.text,
    }


def _real_sizes(job: Job[BuildSettings]) -> tuple[Mapping[str, Sequence[int]], Mapping[str, int]]:
    """Sizes of real data, where the chain knows them: shapes by input name, and sizes by axis name."""
    if job.has("data"):
        from deploychain.numerics.npz import read_npz

        return {name: array.shape for name, array in read_npz(job.input("data")).items()}, {}
    if job.has("export-report"):
        report = json.loads(job.input("export-report").read_text(encoding="utf-8"))
        checks = report.get("models", {}).get("fp32", {}).get("checks", ())
        return {}, checks[0]["sizes"] if checks else {}  # the first check runs the exported example
    return {}, {}


def _summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first = next(row for row in rows if row["built"])
    keys = ("built", "reason", "seconds", "size_bytes")
    return {
        "backend": f"{first['backend']} {first['version']}",
        "compute_capability": first["compute_capability"],
        "engines": {row["name"]: {k: row[k] for k in keys if k in row} for row in rows},
    }


STAGE = Stage(
    name="build",
    version=1,
    requires=("onnx-fp32",),
    accepts=("onnx-fp16", "onnx-int8", "onnx-qat", "export-report", "data"),
    produces=("engine-fp32", "engine-fp16", "engine-int8", "engine-evidence"),
    facts=("tensorrt", "tensorrt_rtx", "gpu", "machine"),
    uses_task=False,
    run=run,
)

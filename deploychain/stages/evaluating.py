"""The work of stage `evaluate`: run every artefact on the same data and measure it against the reference."""

from __future__ import annotations

import functools
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from deploychain.environment import fact, gpu_name, package_version
from deploychain.errors import ArtifactError, CapabilityError, DeploychainError, StageError
from deploychain.job import Job, StageResult
from deploychain.numerics.errors import compare_outputs
from deploychain.numerics.finite import name_samples, non_finite_notes, non_finite_samples
from deploychain.numerics.npz import REMEDY, check_types, read_npz
from deploychain.numerics.scores import Scores, data_sha256, read_classes, read_scores
from deploychain.records import EVALS_SCHEMA, EvalReport, to_json
from deploychain.settings import EvaluateSettings
from deploychain.task import lower_is_better, score

if TYPE_CHECKING:
    from deploychain.backends.runners import Run, Runner
    from deploychain.task import Task

FILE = "eval-reports.json"
# The rows of the table in the order of the chain, and the artefacts that they evaluate.
_ENGINES = ("engine-fp32", "engine-fp16", "engine-int8")
_ORDER = ("train-fp32", "train-amp", "weights", "qat", "onnx-fp32", "onnx-fp16", "onnx-int8", *_ENGINES)
_Outputs = Mapping[str, npt.NDArray[Any]]
# Errors that say something about this machine or about our own code, and nothing about an artefact.
_NOT_THE_ARTEFACT = (OSError, MemoryError, ImportError, NameError, AttributeError)
# Samples that are run one by one as well, and the relative error up to which that is the same computation in FP32.
_ALONE, _SAME = 4, 1e-3
# How many of the worst samples are kept; compare shows as many as its settings say.
_WORST = 100


@dataclass(frozen=True, slots=True)
class _Data:
    """The test data, and how outputs are scored on it."""

    inputs: Mapping[str, npt.NDArray[Any]]
    targets: Any  # None: no targets, no metrics
    samples: int
    task: Task | None
    classes: tuple[str, ...] = ()
    bad: tuple[int, ...] = ()  # samples whose inputs hold NaN or infinity

    def scores(self, outputs: Mapping[str, npt.NDArray[Any]]) -> Scores:
        """Metrics of one artefact."""
        if self.task is not None:
            return read_scores(score(self.task, outputs, self.targets), self.samples, self.classes)
        if self.targets is None:
            return Scores()
        scores = next((a for a in outputs.values() if a.dtype.kind == "f" and a.ndim == 2 and a.shape[1] > 1), None)
        if scores is None:
            return Scores(notes=("there are targets, but no output of shape (samples, classes) to score with them",))
        if self.targets.min() < 0 or self.targets.max() >= scores.shape[1]:
            found = f"targets run from {self.targets.min()} to {self.targets.max()}"
            raise StageError(
                f"{found}, the output has {scores.shape[1]} classes",
                where="data: targets",
                remedy=f"count classes from 0 to {scores.shape[1] - 1}, or leave the targets out",
            )
        hits = (scores.argmax(axis=1) == self.targets) & ~np.isnan(scores).any(axis=1)
        return read_scores({"top1": hits}, self.samples, self.classes)


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of the table to be measured."""

    stage: str
    kind: str
    run: Callable[[], Run]


def run(job: Job[EvaluateSettings]) -> StageResult:
    """Evaluate every artefact that the chain has. One that cannot run here becomes a row that says why.

    Raises:
        StageError: there is no test data, nothing to evaluate, the reference itself does not run, or the task's
            metrics are wrong.
    """
    from deploychain.backends.runners import Runner

    task = job.task.load() if job.task is not None else None
    data = _load_data(job, task)
    if job.settings.samples is not None:
        job.note(f"only the first {data.samples} test samples are evaluated (evaluate.samples)")
    if data.bad:
        job.note(f"the test data hold NaN or infinity: {name_samples(data.bad)}")
    device, device_name = _device(job)
    runner = Runner(data.inputs, job.settings.batch_size, device, job.scratch, task)
    rows = _rows(job, runner)
    if not rows:
        raise StageError("the chain has nothing to evaluate", where=job.stage, remedy="add the stages that make models")
    reference = rows[0].stage
    reports: list[EvalReport] = []
    base: _Outputs | None = None
    with job.progress("evaluate") as progress:
        for done, row in enumerate(rows):
            progress.update(done, len(rows), stage=row.stage)
            report, outputs = _measure(job, row, data, base, reference)
            base = outputs if base is None else base
            reports.append(report)
        progress.update(len(rows), len(rows))
    alone = Runner({k: v[:_ALONE] for k, v in data.inputs.items()}, 1, device, job.scratch, task)
    if base is not None and _depends_on_neighbours(_rows(job, alone)[0], base):
        job.note(
            "the model's output for a sample depends on the other samples of its batch (batch statistics?): "
            "every number here holds for this batch size and order only"
        )
    reports.extend(_engines_not_built(job))
    reports.sort(key=lambda r: _ORDER.index(r.stage))
    for report in reports:
        if not report.ran:
            job.note(f"{report.stage} not run: {report.reason}")
    content = {
        "schema": EVALS_SCHEMA,
        "pipeline": job.pipeline,
        "reference": reference,
        "data_sha256": data_sha256(data.inputs, data.targets),
        "samples": data.samples,
        "device": device_name,
        "versions": _versions(),
        "flags": _flags(reports),
        "directions": _directions(task, next(r for r in reports if r.stage == reference).metrics),
        "evals": reports,
    }
    text = json.dumps(to_json(content), ensure_ascii=False, allow_nan=False)
    (job.out / FILE).write_text(text, encoding="utf-8")
    return StageResult({"eval-reports": FILE}, _summary(content, reports))


def _depends_on_neighbours(row: _Row, base: _Outputs) -> bool:
    """Whether the first samples, each in a batch of its own, come out differently than among the others."""
    try:
        outputs = _aligned(row.run().outputs, base)
        errors = compare_outputs(outputs, {k: v[:_ALONE] for k, v in base.items()}, worst=0)
    except Exception as error:  # a fixed batch size: the rows of the table have told it already
        if isinstance(error, _NOT_THE_ARTEFACT):
            raise
        return False
    return errors.relative_error is not None and errors.relative_error > _SAME


def _rows(job: Job[EvaluateSettings], runner: Runner) -> list[_Row]:
    """What can be evaluated, the reference first: the trained model, else its weights, else the FP32 ONNX model."""
    rows: list[_Row] = []

    def add(stage: str, kind: str, run: Callable[[Path], Run]) -> None:
        if job.has(kind):
            rows.append(_Row(stage, kind, lambda: run(job.input(kind))))

    add("train-fp32", "checkpoint", runner.checkpoint)
    add("weights", "weights", runner.weights)
    add("onnx-fp32", "onnx-fp32", runner.onnx)
    add("train-amp", "checkpoint", lambda path: runner.checkpoint(path, _autocast(job)))
    if job.has("quantizers"):
        add("qat", "qat-weights", lambda path: runner.quantised(path, job.input("quantizers")))
    add("onnx-fp16", "onnx-fp16", runner.onnx)
    # Without a plan stage the Q/DQ export is the INT8 model, as it is for the build stage.
    add("onnx-int8", "onnx-int8" if job.has("onnx-int8") else "onnx-qat", runner.onnx)
    for engine in _evidence(job):
        if engine.get("built"):
            kind = f"engine-{engine['name']}"
            add(kind, kind, functools.partial(runner.engine, flavour=str(engine["backend"])))
    return rows


def _measure(
    job: Job[EvaluateSettings], row: _Row, data: _Data, base: _Outputs | None, reference: str
) -> tuple[EvalReport, _Outputs]:
    """Run one row and compare it with the reference's outputs; ``base`` is None for the reference itself.

    An artefact that does not run, or outputs on which the metrics fail, are findings about that row. For the
    reference they are errors: nothing else could be told without it, and the task's own mistakes show there first.
    """
    began = time.perf_counter()
    sha256 = job.inputs[row.kind].sha256
    try:
        done = row.run()
        outputs = done.outputs if base is None else _aligned(done.outputs, base)
        errors = compare_outputs(outputs, outputs if base is None else base, worst=_WORST)
    except Exception as error:
        if base is None or isinstance(error, _NOT_THE_ARTEFACT) or "out of memory" in str(error).lower():
            raise
        return EvalReport(row.stage, ran=False, reason=_line(error), reference=reference, artefact_sha256=sha256), {}
    notes = list(done.notes)
    try:
        scores = data.scores(outputs)
    except Exception as error:  # many a metric raises on NaN
        if base is None:
            raise
        scores = Scores()
        notes.append(f"the task's metrics failed on these outputs: {_line(error)}")
    if row.stage == "weights" and not errors.exact:
        told = f"the published weights do not compute what {reference} computes: bit equality was expected"
        notes.append(told)
        job.note(f"{told}; does model() make anything random that is not a parameter or a buffer of the checkpoint?")
    if errors.non_finite or errors.max_abs_error is None:
        notes.extend(non_finite_notes(outputs, base, data.bad))
    report = EvalReport(
        stage=row.stage,
        ran=True,
        how=done.how,
        reference=reference,
        samples=data.samples,
        metrics=scores.metrics,
        per_sample=scores.per_sample,
        per_class=scores.per_class,
        sample_classes=data.classes if scores.per_sample else (),
        agreement=errors.agreement,
        max_abs_error=errors.max_abs_error,
        mean_abs_error=errors.mean_abs_error,
        relative_error=errors.relative_error,
        cosine=errors.cosine,
        snr_db=errors.snr_db,
        exact=errors.exact,
        non_finite=errors.non_finite,
        worst_samples=errors.worst_samples,
        per_output=errors.per_output,
        seconds=round(time.perf_counter() - began, 3),
        artefact_sha256=sha256,
        notes=(*notes, *errors.notes, *scores.notes),
    )
    return report, outputs


def _aligned(outputs: _Outputs, base: _Outputs) -> _Outputs:
    """The outputs under the reference's names: by name, else by order (the export keeps the order of the model's)."""
    if set(base) <= set(outputs) or len(outputs) != len(base):
        return outputs
    return dict(zip(base, outputs.values(), strict=True))


def _engines_not_built(job: Job[EvaluateSettings]) -> list[EvalReport]:
    return [
        EvalReport(f"engine-{e['name']}", ran=False, reason=f"the engine was not built: {e.get('reason') or 'unknown'}")
        for e in _evidence(job)
        if not e.get("built")
    ]


def _evidence(job: Job[EvaluateSettings]) -> list[dict[str, Any]]:
    if not job.has("engine-evidence"):
        return []
    engines: list[dict[str, Any]] = json.loads(job.input("engine-evidence").read_text(encoding="utf-8"))["engines"]
    return engines


def _load_data(job: Job[EvaluateSettings], task: Task | None) -> _Data:
    """The test data of the task, else of the npz file that the user gave."""
    limit = job.settings.samples
    if task is not None:
        from deploychain.backends.torch_data import collect_test

        inputs, targets = collect_test(task, limit)
        samples = len(next(iter(inputs.values())))
        classes = getattr(task, "classes", None)
        named = read_classes(classes(targets), samples) if classes else ()
        return _Data(inputs, targets, samples, task, named, _bad(inputs, samples))
    if not job.has("data"):
        raise StageError("there is no test data", where=job.stage, remedy="add a task, or `data: test.npz`")
    arrays = read_npz(job.input("data"))
    whole = len(next(iter(arrays.values()), ()))
    arrays = {n: a[:limit] if len(a) == whole else a for n, a in arrays.items()}
    targets = arrays.pop("targets", None)
    if not arrays:
        raise ArtifactError("the file holds no inputs", where=str(job.inputs["data"].path), remedy=REMEDY)
    if job.has("onnx-fp32"):
        from deploychain.backends.onnx_inputs import input_types

        check_types(arrays, input_types(job.input("onnx-fp32")), str(job.inputs["data"].path))
    samples = len(next(iter(arrays.values())))
    if targets is not None and (targets.shape != (samples,) or targets.dtype.kind not in "iu"):
        raise ArtifactError(
            f"targets are {targets.dtype} of shape {list(targets.shape)} for {samples} samples",
            where=str(job.inputs["data"].path),
            remedy="give one class index (integer) per sample, or leave them out",
        )
    classes = tuple(map(str, targets.tolist())) if targets is not None else ()
    return _Data(arrays, targets, samples, None, classes, _bad(arrays, samples))


def _bad(inputs: Mapping[str, npt.NDArray[Any]], samples: int) -> tuple[int, ...]:
    """Samples with NaN or infinity; an input that all samples share has none."""
    return non_finite_samples({n: a for n, a in inputs.items() if a.ndim and len(a) == samples})


def _device(job: Job[EvaluateSettings]) -> tuple[str, str]:
    """``cpu`` or ``cuda``, and its name."""
    asked = job.settings.device
    cpu = ("cpu", f"CPU {fact('machine')}")
    if job.task is not None:
        from deploychain.backends.torch_device import describe_device, resolve_device

        device = resolve_device(asked)
        return cpu if device.type == "cpu" else (device.type, describe_device(device))
    from deploychain.backends.ort import cuda_available

    if asked == "cuda" and not cuda_available():
        raise CapabilityError(
            "device: cuda is asked for, but onnxruntime has no CUDA provider",
            where="evaluate.device",
            remedy="install onnxruntime-gpu instead of onnxruntime, or use device: auto",
        )
    gpu = gpu_name()
    return ("cuda", gpu) if asked != "cpu" and cuda_available() and gpu else cpu


def _autocast(job: Job[EvaluateSettings]) -> Literal["fp16", "bf16"]:
    """The half precision that the model was trained in; BF16 where it was not, or nobody knows."""
    if not job.has("train-log"):
        return "bf16"
    log = json.loads(job.input("train-log").read_text(encoding="utf-8"))
    return "fp16" if log.get("precision") == "fp16-mixed" else "bf16"


def _directions(task: Task | None, metrics: Mapping[str, Any]) -> dict[str, Literal["higher", "lower"]]:
    lower = lower_is_better(task)
    unknown = sorted(lower - set(metrics))
    if unknown:
        raise StageError(
            f"lower_is_better names {unknown[0]!r}, which is no metric ({', '.join(metrics)})", where="task"
        )
    return {name: "lower" if name in lower else "higher" for name in metrics}


def _versions() -> dict[str, str]:
    facts = ("torch", "onnx", "onnxruntime", "modelopt", "tensorrt", "tensorrt_rtx")
    found = {name: fact(name) for name in facts}
    own = package_version("deploychain") or "source tree"
    here = {"deploychain": own, "python": platform.python_version(), "numpy": np.__version__}
    return here | {name: version for name, version in found.items() if version != "absent"}


def _flags(reports: Sequence[EvalReport]) -> dict[str, str]:
    """What would make two tables incomparable if it differed."""
    half = [r.how for r in reports if r.ran and r.stage in ("onnx-fp16", "onnx-int8")]
    flags = {"qdq": "unfused", "tf32": "off"}
    if half:
        flags["fp16"] = "rounding emulated" if any("emulated" in how for how in half) else "real kernels"
    return flags


def _summary(content: Mapping[str, Any], reports: Sequence[EvalReport]) -> dict[str, Any]:
    first = next(r for r in reports if r.stage == content["reference"])
    return {
        "reference": first.stage,
        "samples": content["samples"],
        "device": content["device"],
        "metrics": dict(first.metrics),
        "evaluated": [r.stage for r in reports if r.ran],
        "not_run": {r.stage: r.reason for r in reports if not r.ran},
    }


def _line(error: Exception) -> str:
    text = str(error) if isinstance(error, DeploychainError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:500]

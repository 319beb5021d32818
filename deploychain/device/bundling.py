"""`deploychain bundle`: collect a finished run into one file for the device."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from deploychain.artifact import Artifact
from deploychain.device.archive import is_name, write_archive
from deploychain.device.bundle import BUNDLE_SCHEMA, EngineWish, Golden, TensorFile, WeakRequest
from deploychain.device.golden import Arrays, measure, score_classes
from deploychain.device.output import check_output
from deploychain.engine.onnxfile import external_files
from deploychain.environment import package_version
from deploychain.errors import ArtifactError, ConfigError, StageError
from deploychain.numerics.nodes import DATA_MOVEMENT
from deploychain.numerics.npz import REMEDY, check_types, read_npz
from deploychain.numerics.scores import Scores, data_sha256, read_classes, read_scores
from deploychain.plan import ModelPlan, read_plan
from deploychain.profiles import make_profiles
from deploychain.records import EvalReport, to_json
from deploychain.settings import BuildSettings
from deploychain.task import lower_is_better, score

if TYPE_CHECKING:
    from deploychain.config import Pipeline
    from deploychain.task import Task

EngineName = Literal["fp32", "fp16", "int8"]
# The model of each engine; as in the build stage, the Q/DQ export stands in for the planned INT8 model.
_MODELS: dict[EngineName, tuple[str, ...]] = {
    "fp32": ("onnx-fp32",),
    "fp16": ("onnx-fp16",),
    "int8": ("onnx-int8", "onnx-qat"),
}
_WEAK: dict[EngineName, tuple[str, tuple[Literal["fp16", "int8"], ...]]] = {
    "fp32": ("onnx-fp32", ()),
    "fp16": ("onnx-fp32", ("fp16",)),
    "int8": ("onnx-qat", ("fp16", "int8")),
}
_ONE_FILE = "write its weights into one file beside it: onnx.save_model(..., save_as_external_data=True)"
# Nodes that compute nothing of their own take no precision of their own.
_NO_ARITHMETIC = DATA_MOVEMENT | {"QuantizeLinear", "DequantizeLinear", "Cast", "Constant", "Shape", "Range", "TopK"}


@dataclass(frozen=True, slots=True)
class Packed:
    """What was written."""

    path: Path
    size: int
    content_sha256: str
    engines: tuple[str, ...]
    samples: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Data:
    inputs: Arrays
    targets: Any
    samples: int
    task: Task | None
    classes: tuple[str, ...]


def find_pipeline(run: Path, pipeline: Path | None) -> tuple[Path, Path]:
    """(pipeline file, run folder) from what the user named: a run folder or a pipeline file.

    Raises:
        ConfigError: the pipeline file cannot be found.
    """
    from deploychain.chain import default_run_dir
    from deploychain.config import load_pipeline

    if not run.exists():
        raise ConfigError("there is no such run folder or pipeline file", where=str(run))
    if run.is_file():
        return run, default_run_dir(load_pipeline(run))
    if pipeline is not None:
        return pipeline, run
    guess = run.resolve().parent.parent / "pipeline.yaml"  # runs/NAME beside the file
    if guess.is_file():
        return guess, run
    raise ConfigError(
        "the pipeline of this run is not known", where=str(run), remedy="name it with --pipeline pipeline.yaml"
    )


def make_bundle(
    pipeline_file: Path,
    run_dir: Path,
    target: Path,
    *,
    samples: int = 256,
    note: Callable[[str], None] = lambda text: None,
) -> Packed:
    """Pack the models of a finished run, the plan's requests, the profiles, and test data with answers.

    Args:
        samples: the first N test samples travel.

    Raises:
        StageError: the run is not up to date, or it has no ONNX model.
        ConfigError: the pipeline is wrong.
    """
    from deploychain.config import load_pipeline

    check_output(target)
    pipeline = load_pipeline(pipeline_file)
    have = _artifacts(pipeline, run_dir)
    if "onnx-fp32" not in have:
        raise StageError("the run has no ONNX model", where=str(run_dir), remedy="run the export stage first")
    notes: list[str] = []
    data = _load_data(pipeline, have, samples)
    with tempfile.TemporaryDirectory(prefix="deploychain-bundle-") as scratch:
        files: dict[str, Path] = {}
        models = {kind: _add_model(files, kind, have[kind].open()) for kind in _model_kinds(have)}
        chosen = {name: kind for name, kinds in _MODELS.items() for kind in reversed(kinds) if kind in models}
        wishes = tuple(_wish(name, kind, models, have) for name, kind in chosen.items())
        for name, kinds in _MODELS.items():
            if name not in chosen:
                notes.append(f"no {name} engine: the run has no {kinds[0]} model")
        answers = {f"onnx-{name}": files[models[kind]] for name, kind in chosen.items()}
        golden, evals, inputs = _golden(data, answers, files, Path(scratch))
        profiles, more = _profiles(pipeline, have, models["onnx-fp32"], files, inputs)
        notes += more
        for line in notes:
            note(line)
        modules = _report(have).get("nodes", {})
        manifest = to_json(
            {
                "schema": BUNDLE_SCHEMA,
                "name": pipeline.settings.name,
                "engines": [asdict(w) for w in wishes],
                "profiles": profiles,
                "golden": asdict(golden),
                "evals": evals,
                "directions": _directions(data, evals),
                "modules": modules,
                "versions": {"deploychain": package_version("deploychain") or "source tree"},
            }
        )
        # For people and for later questions: the plan, the proofs, and the metrics of every stage at home.
        for kind in ("precision-plan", "engine-evidence", "export-report", "comparison"):
            if kind in have:
                files[f"evidence/{kind}.json"] = have[kind].open()
        content = write_archive(target, manifest, files)
    return Packed(target, target.stat().st_size, content, tuple(w.name for w in wishes), data.samples, tuple(notes))


def _artifacts(pipeline: Pipeline, run_dir: Path) -> dict[str, Artifact]:
    """Every artefact of the run by kind, all of them up to date with the pipeline."""
    from deploychain.chain import dry_run

    rows = dry_run(pipeline, run_dir=run_dir).stages
    have: dict[str, Artifact] = {}
    for row in rows:
        if row.status != "cached" or row.record is None:
            if row.name in ("evaluate", "compare"):  # not needed on the device
                continue
            raise StageError(
                f"stage {row.name} is {row.status}: {row.reason}",
                where=str(run_dir),
                remedy=f"bring the run up to date first: deploychain run {pipeline.file}",
            )
        have |= row.record.by_kind()
    start = pipeline.settings.start
    for kind, name in (("onnx-fp32", start.onnx), ("onnx-qat", start.onnx_qat)) if start else ():
        if name and kind not in have:
            have[kind] = Artifact.of(kind, pipeline.base / name)
    if pipeline.settings.data:
        have["data"] = Artifact.of("data", pipeline.base / pipeline.settings.data)
    return have


def _model_kinds(have: Mapping[str, Artifact]) -> list[str]:
    return [kind for kind in ("onnx-fp32", "onnx-fp16", "onnx-int8", "onnx-qat") if kind in have]


def _add_model(files: dict[str, Path], kind: str, path: Path) -> str:
    """A model in a folder of its own, so that external weights keep the name by which it knows them."""
    folder = f"models/{kind}"
    model = f"{folder}/model.onnx"
    found = weight_files(path)
    taken = {"model.onnx"}
    for name, weights in found.items():
        inside = f"{folder}/{name}"
        if name.lower() in taken or not is_name(inside):
            raise ArtifactError(
                f"the model keeps weights in {name!r}, which is no name for a file in a bundle",
                where=str(path),
                remedy=_ONE_FILE,
            )
        taken.add(name.lower())
        files[inside] = weights
    files[model] = path
    return model


def weight_files(path: Path) -> dict[str, Path]:
    """The files in which an ONNX model keeps weights: name relative to its folder -> file.

    The names come from the model, and a bundle carries what they lead to: none may lead out of the model's folder.

    Raises:
        ArtifactError: the model cannot be read, a name leads out of its folder, or there is no such file.
    """
    home = Path(os.path.realpath(path.parent))  # resolve() raises on a link to itself
    found: dict[str, Path] = {}
    for name in external_files(path):
        parts = PurePosixPath(name)
        outside = parts.is_absolute() or ".." in parts.parts or not parts.parts or not name.isprintable()
        weights = home / parts
        if outside or "\\" in name or not Path(os.path.realpath(weights)).is_relative_to(home):
            raise ArtifactError(
                f"the model keeps weights in {name!r}, which leads out of its folder", where=str(path), remedy=_ONE_FILE
            )
        if not weights.is_file():
            raise ArtifactError(f"the model's weights file {name!r} is missing", where=str(path))
        found[str(parts)] = weights
    return found


def _wish(name: EngineName, kind: str, models: Mapping[str, str], have: Mapping[str, Artifact]) -> EngineWish:
    plan = read_plan(have["precision-plan"].open()).models.get(name) if "precision-plan" in have else None
    weak_kind, flags = _WEAK[name]
    held = _held(plan) if name != "fp32" else {}
    weak = WeakRequest(models.get(weak_kind, models[kind]), flags, held)
    nodes = plan.of() if plan else {}
    return EngineWish(name, models[kind], nodes, {n.name: n.op for n in plan.nodes} if plan else {}, weak)


def _held(plan: ModelPlan | None) -> dict[str, Literal["fp32", "fp16"]]:
    """Nodes that compute and that the plan keeps in FP32."""
    nodes = plan.nodes if plan else ()
    return {n.name: "fp32" for n in nodes if n.precision == "fp32" and n.op not in _NO_ARITHMETIC}


def _load_data(pipeline: Pipeline, have: Mapping[str, Artifact], limit: int) -> _Data:
    if pipeline.task is not None:
        from deploychain.backends.torch_data import collect_test

        task = pipeline.task.load()
        inputs, targets = collect_test(task, limit)
        count = len(next(iter(inputs.values())))
        classes = getattr(task, "classes", None)
        return _Data(inputs, targets, count, task, read_classes(classes(targets), count) if classes else ())
    if "data" not in have:
        raise StageError("there is no test data", remedy="add a task, or `data: test.npz`, to the pipeline")
    from deploychain.backends.onnx_inputs import input_types

    arrays = {name: array[:limit] for name, array in read_npz(have["data"].open()).items()}
    targets = arrays.pop("targets", None)
    if not arrays:
        raise ArtifactError("the file holds no inputs", where=str(have["data"].path), remedy=REMEDY)
    check_types(arrays, input_types(have["onnx-fp32"].open()), str(have["data"].path))
    count = len(next(iter(arrays.values())))
    return _Data(arrays, targets, count, None, ())


def _golden(
    data: _Data, models: Mapping[str, Path], files: dict[str, Path], scratch: Path
) -> tuple[Golden, tuple[EvalReport, ...], Arrays]:
    """Run every ONNX model over the slice; keep inputs and answers as arrays in the bundle."""
    from deploychain.backends.runners import Runner

    runner = Runner(data.inputs, 64, "cpu", scratch, data.task)
    outputs: dict[str, tuple[TensorFile, ...]] = {}
    evals: list[EvalReport] = []
    base: Arrays | None = None
    inputs: Arrays = {}
    for kind, model in models.items():
        done = runner.onnx(model)
        if base is None:
            base, inputs = done.outputs, _named(model, data)
        outputs[kind] = _save(done.outputs, f"golden/{kind}", files, scratch)
        evals.append(
            measure(
                kind,
                done.outputs,
                base,
                reference_stage="onnx-fp32",
                how=done.how,
                classes=data.classes,
                scores=_scores(data, done.outputs),
                notes=done.notes,
            )
        )
    saved = _save(inputs, "golden/input", files, scratch)
    fixed = _fixed(next(iter(models.values())))
    targets = None
    if isinstance(data.targets, np.ndarray) and data.targets.dtype.kind in "iu" and data.targets.ndim == 1:
        targets = _save({"targets": data.targets}, "golden/targets", files, scratch)[0]
    digest = data_sha256(data.inputs, data.targets)
    golden = Golden(data.samples, digest, saved, "onnx-fp32", outputs, targets, data.classes, fixed)
    return golden, tuple(evals), inputs


def _fixed(model: Path) -> dict[str, tuple[int, ...]]:
    """Inputs without a dynamic axis: their engines run at this one shape."""
    from deploychain.backends.onnx_inputs import network_inputs

    return {name: tuple(spec.shape) for name, (spec, _) in network_inputs(model).items() if not spec.dynamic}


def _named(model: Path, data: _Data) -> Arrays:
    """The inputs under the model's names, in its types; the chain's exports keep the order of the arguments."""
    from deploychain.backends.onnx_inputs import network_inputs

    types = {name: dtype for name, (_, dtype) in network_inputs(model).items()}
    if set(types) <= set(data.inputs):
        return {name: data.inputs[name].astype(dtype, copy=False) for name, dtype in types.items()}
    if len(types) != len(data.inputs):
        raise StageError(f"the model's inputs {', '.join(types)} are not in the data ({', '.join(data.inputs)})")
    pairs = zip(types.items(), data.inputs.values(), strict=True)
    return {name: array.astype(dtype, copy=False) for (name, dtype), array in pairs}


def _save(arrays: Arrays, prefix: str, files: dict[str, Path], scratch: Path) -> tuple[TensorFile, ...]:
    saved = []
    for index, (name, array) in enumerate(arrays.items()):
        inside = f"{prefix}-{index}.npy"
        path = scratch / inside.replace("/", "-")
        np.save(path, np.ascontiguousarray(array), allow_pickle=False)
        files[inside] = path
        saved.append(TensorFile(name, inside, array.dtype.str, tuple(array.shape)))
    return tuple(saved)


def _scores(data: _Data, outputs: Arrays) -> Scores:
    if data.task is not None:
        return read_scores(score(data.task, outputs, data.targets), data.samples, data.classes)
    return score_classes(outputs, data.targets, data.samples, data.classes)


def _directions(data: _Data, evals: tuple[EvalReport, ...]) -> dict[str, str]:
    lower = lower_is_better(data.task)
    return {name: "lower" if name in lower else "higher" for name in evals[0].metrics}


def _report(have: Mapping[str, Artifact]) -> dict[str, Any]:
    if "export-report" not in have:
        return {}
    content: dict[str, Any] = json.loads(have["export-report"].open().read_text(encoding="utf-8"))
    return content


def _profiles(
    pipeline: Pipeline, have: Mapping[str, Artifact], model: str, files: Mapping[str, Path], inputs: Arrays
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The profiles that the build stage used; without one, those of its default settings."""
    if "engine-evidence" in have:
        rows = json.loads(have["engine-evidence"].open().read_text(encoding="utf-8"))["engines"]
        built = next((row for row in rows if row.get("built")), None)
        if built is not None:
            return dict(built["profiles"]), ()
    from deploychain.backends.onnx_inputs import network_inputs

    specs = [spec for spec, _ in network_inputs(files[model]).values()]
    settings = pipeline.settings.stages.build or BuildSettings.model_validate({})
    shapes = {name: array.shape for name, array in inputs.items()}
    profiles, notes = make_profiles(specs, settings.shapes, settings.opt_batch, shapes)
    return {name: profile.to_dict() for name, profile in profiles.items()}, notes

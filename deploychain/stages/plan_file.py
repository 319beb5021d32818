"""Plans for people who only have an ONNX file: what the `plan` commands call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from deploychain.errors import ConfigError
from deploychain.numerics.calibration import METHODS, Method
from deploychain.numerics.islands import quantised_nodes, quantiser_snr
from deploychain.numerics.nodes import Wiring
from deploychain.numerics.sensitivity import SensitivityTable, blocks_of, measure_sensitivity
from deploychain.plan import PRECISIONS, Finding, ModelPlan, Plan, read_plan, write_plan
from deploychain.plan_flags import text_for
from deploychain.records import PLAN_SCHEMA, to_json
from deploychain.stages.plan_data import from_npz
from deploychain.stages.planning import PlanRequest, make_plan, measure, working

Target = Literal["tensorrt-10", "tensorrt-11", "tensorrt-rtx"]
TARGETS: tuple[Target, ...] = ("tensorrt-10", "tensorrt-11", "tensorrt-rtx")
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class FileRequest:
    """`deploychain plan MODEL --data DATA ...`"""

    model: Path
    data: Path
    precision: str = "fp16"
    output: Path | None = None  # default: <model>.<precision>.onnx beside it
    target: Target = "tensorrt-rtx"
    max_drop: float | None = None
    saved: Path | None = None
    pins: Mapping[str, str] = field(default_factory=dict)
    data_max: float = 512.0
    init_max: float = 65504.0
    samples: int | None = None
    budget: int = 200
    prove_guards: bool = True
    plan_file: Path | None = None  # default: <output>.plan.yaml
    calibration: Method = "percentile"
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileResult:
    """What a plan of one file made."""

    plan: ModelPlan
    output: Path
    plan_file: Path
    texts: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """False when a limit was given and no plan keeps it, or the converted model has errors left."""
        return self.plan.within is not False and not self.plan.left

    def document(self) -> dict[str, Any]:
        """The object of ``--json``."""
        made: dict[str, Any] = to_json(self.plan)
        order = ("nodes", "findings", "evaluations", "drop")
        return {
            "schema": PLAN_SCHEMA,
            **{key: made.pop(key) for key in order},
            "output": str(self.output),
            "plan": str(self.plan_file),
            "texts": [str(p) for p in self.texts],
            "ok": self.ok,
            **{k: v for k, v in made.items() if k != "output"},
        }


def plan_file(request: FileRequest, progress: Progress) -> FileResult:
    """Make or re-apply a plan and write the converted model, the plan file and, for TensorRT 10, the build options.

    Raises:
        ConfigError: precision and target do not go together, or a pin is wrong.
        ArtifactError: a file cannot be read.
        StageError: the model cannot be planned or converted.
        CapabilityError: a package is missing.
    """
    if request.precision not in PRECISIONS[1:]:
        raise ConfigError(f"precision is {request.precision!r}", where="--precision", remedy="fp16, bf16 or int8")
    low = "bf16" if request.precision == "bf16" else "fp16"
    alien = sorted(set(request.pins.values()) - {"fp32", low, request.precision})
    if alien or (request.exclude and request.precision != "int8"):
        what = f"a pin to {alien[0]}" if alien else "--exclude"
        raise ConfigError(
            f"{what} means nothing for {request.precision}",
            where="--precision",
            remedy=f"--precision {alien[0] if alien else 'int8'}",
        )
    output, written = _outputs(request)
    stored = read_plan(request.saved) if request.saved is not None else None
    saved = _stored_model(stored, request) if stored is not None else None
    pins = {**(stored.pins if stored is not None else {}), **request.pins}
    data = from_npz(request.data, request.samples)
    made = make_plan(
        PlanRequest(
            source=request.model,
            precision=request.precision,
            output=output,
            inputs=data.inputs,
            data=data.file,
            pins=pins,
            data_max=request.data_max,
            init_max=request.init_max,
            saved=saved,
            max_drop=request.max_drop,
            budget=request.budget,
            journal=output.with_name(f"{output.name}.search.jsonl") if request.max_drop is not None else None,
            metric=data.metric,
            metric_name=data.metric_name,
            ptq=True,
            calibration=request.calibration,
            exclude=request.exclude,
            must_match=(*request.pins, *request.exclude),
            prove_guards=request.prove_guards and request.target == "tensorrt-rtx",
        ),
        progress,
    )
    settings = {"source": request.model.name, "target": request.target, "data_max": request.data_max}
    write_plan(Plan({request.precision: made}, pins=pins, settings=settings), written)
    texts: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    if request.target == "tensorrt-10":
        command, script, said = text_for(made, str(request.model))
        texts = (output.with_name(f"{output.name}.trtexec.txt"), output.with_name(f"{output.stem}_polygraphy.py"))
        texts[0].write_text(command + "\n", encoding="utf-8")
        texts[1].write_text(script, encoding="utf-8")
        notes = tuple(said)
    return FileResult(made, output, written, texts, (*made.notes, *notes))


def _outputs(request: FileRequest) -> tuple[Path, Path]:
    """The converted model and the plan file: two files in folders that exist, and none of those that are read."""
    output = request.output or request.model.with_suffix(f".{request.precision}.onnx")
    if output.is_dir():
        raise ConfigError(f"{str(output)!r} is a folder", where="-o", remedy="name a file")
    written = request.plan_file or output.with_name(f"{output.name}.plan.yaml")
    taken = {request.model.resolve(): "the model", request.data.resolve(): "the data"}
    for path, option in ((output, "-o"), (written, "--save-plan")):
        if path.is_dir() or not path.parent.is_dir():
            what = "is a folder" if path.is_dir() else "is in a folder that does not exist"
            raise ConfigError(f"{str(path)!r} {what}", where=option, remedy="name a file in an existing folder")
        if path.resolve() in taken:
            raise ConfigError(
                f"{str(path)!r} is {taken[path.resolve()]} already", where=option, remedy="name another file"
            )
        taken[path.resolve()] = "the output"
    return output, written


def check_model(model: Path, fixed: Path | None = None) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """TensorRT's Q/DQ contract on any model.

    Args:
        fixed: write the model with its mechanical breaches repaired here.

    Returns:
        The breaches, and those of them that the written model no longer has.

    Raises:
        ArtifactError: the file cannot be read.
        ConfigError: the repaired file would replace the model.
        StageError: the repaired file is not valid or cannot be written.
    """
    from deploychain.backends import onnx_graph
    from deploychain.backends.onnx_qdq import QdqFinding, check_qdq, fix_qdq

    def told(found: QdqFinding) -> Finding:
        return Finding(found.node, found.module or None, "qdq", found.severity, found.detail, found.remedy)

    loaded = onnx_graph.load(model)
    breaches = tuple(told(f) for f in check_qdq(loaded))
    if fixed is None:
        return breaches, ()
    if fixed.resolve() == model.resolve():
        raise ConfigError("the output is the input", where="-o", remedy="name another file")
    made, repaired = fix_qdq(loaded)
    draft = fixed.with_name(f".{fixed.name}.draft")
    try:
        onnx_graph.save(made, draft, data=f"{fixed.name}.data")
        onnx_graph.check(draft, onnx_graph.opset(loaded), str(model))
        draft.replace(fixed)
    finally:
        draft.unlink(missing_ok=True)
    return breaches, tuple(told(f) for f in repaired)


def sensitivity_of(
    model: Path,
    data: Path,
    precision: str,
    by: str,
    budget: int,
    samples: int | None,
    progress: Progress,
) -> tuple[SensitivityTable, str]:
    """The cost of each node or module in low precision, and what the numbers measure.

    Raises:
        ConfigError: ``precision`` or ``by`` is not known.
        ArtifactError, StageError: the model or the data cannot be used.
    """
    if precision not in PRECISIONS[1:]:
        raise ConfigError(f"precision is {precision!r}", where="--precision", remedy="fp16, bf16 or int8")
    if by not in ("node", "module"):
        raise ConfigError(f"--by {by!r}", where="--by", remedy="node or module")
    given = from_npz(data, samples)
    request = PlanRequest(
        model,
        precision,
        model,
        given.inputs,
        given.file,
        metric=given.metric,
        metric_name=given.metric_name,
        ptq=True,
    )
    found = measure(request, progress)
    emulator, yardstick = working(request, found)
    infos = {i.name: i for i in found.infos}
    floats = [i.name for i in found.infos if i.is_float and (i.not_lowerable == "" or precision == "int8")]
    local: Mapping[str, float] = found.local_snr
    done = 0

    def drop_of(nodes: frozenset[str]) -> float:
        nonlocal done
        done += 1
        progress("sensitivity", done, min(budget, 2 * len(blocks) + 1))
        if precision == "int8":
            return yardstick.drop(emulator.outputs(frozenset(), frozenset(quantised) - nodes))
        return yardstick.drop(emulator.outputs(nodes))

    if precision == "int8":
        quantised = quantised_nodes(found.infos)
        floats = [n for n in floats if n in quantised]
        local = quantiser_snr(floats, Wiring.of(found.infos), found.local_snr)
    blocks = blocks_of(found.infos, floats, by)
    return measure_sensitivity(blocks, infos, local, drop_of, budget), yardstick.of


def _stored_model(stored: Plan, request: FileRequest) -> ModelPlan:
    found = stored.models.get(request.precision)
    if found is None:
        raise ConfigError(
            f"the plan has no {request.precision} model, only {', '.join(stored.models)}",
            where=str(request.saved),
            remedy="choose one of them with --precision",
        )
    return found


def parse_target(text: str) -> Target:
    """The target of ``--target``.

    Raises:
        ConfigError: it is none of the three.
    """
    for target in TARGETS:
        if text == target:
            return target
    raise ConfigError(f"--target {text!r}", where="--target", remedy="one of " + ", ".join(TARGETS))


def parse_method(text: str) -> Method:
    """The calibration method of ``--calibration``.

    Raises:
        ConfigError: it is none of them.
    """
    for method in METHODS:
        if text == method:
            return method
    raise ConfigError(f"--calibration {text!r}", where="--calibration", remedy="one of " + ", ".join(METHODS))


def parse_pins(texts: list[str]) -> dict[str, str]:
    """``--pin PATTERN=PRECISION``, repeated.

    Raises:
        ConfigError: the form or the precision is wrong.
    """
    pins = {}
    for text in texts:
        pattern, equals, precision = text.rpartition("=")
        if not equals or not pattern or precision not in PRECISIONS:
            raise ConfigError(
                f"--pin {text!r}", where="--pin", remedy="write PATTERN=PRECISION, for example '/head/*=fp32'"
            )
        pins[pattern] = precision
    return pins

"""The settings of a pipeline and of each stage, with the defaults that an expert would choose.

`config` reads them from pipeline.yaml; stages receive them frozen. Field descriptions become the JSON Schema that
editors show (``deploychain schema``).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

STAGE_ORDER = ("train", "weights", "qat", "export", "plan", "build", "evaluate", "compare")


def _no_bool(value: Any) -> Any:
    """`epochs: yes` is true in YAML, and true is 1 in Python: a number that nobody wrote."""
    if isinstance(value, bool):
        raise ValueError("expected a number")
    return value


# On every number of the settings, and last: limits behind it would be lost in the JSON Schema.
NUMBER = BeforeValidator(_no_bool)

PositiveInt = Annotated[int, Field(ge=1), NUMBER]
Fraction = Annotated[float, Field(ge=0.0, le=1.0), NUMBER]
AxisName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Settings(BaseModel):
    """Base: frozen, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class TrainSettings(Settings):
    """AMP training (`torch.amp.autocast` and, for FP16, `torch.amp.GradScaler`)."""

    epochs: PositiveInt = Field(10, description="Passes over the training data.")
    batch_size: PositiveInt = Field(128, description="Samples per process and micro-batch.")
    precision: Literal["auto", "fp32", "fp16-mixed", "bf16-mixed"] = Field(
        "auto",
        description="auto: bf16-mixed or fp16-mixed on a GPU that has it; FP32 on a CPU without the instructions.",
    )
    mixed_epochs: PositiveInt | None = Field(
        None,
        description="Only the last N epochs run in mixed precision, the others in FP32 (FP16 is slow on most CPUs); "
        "empty: all.",
    )
    optimizer: Literal["sgd", "adamw"] = Field("adamw", description="sgd uses Nesterov momentum.")
    lr: Annotated[float, Field(gt=0), NUMBER] = Field(2e-3, description="Peak learning rate.")
    momentum: Fraction = Field(0.9, description="SGD momentum.")
    weight_decay: Annotated[float, Field(ge=0), NUMBER] = Field(1e-2, description="Not applied to biases and norms.")
    schedule: Literal["cosine", "constant"] = "cosine"
    warmup_epochs: Annotated[float, Field(ge=0), NUMBER] = Field(0.5, description="Linear warm-up, in epochs.")
    accumulate: PositiveInt = Field(1, description="Micro-batches per optimizer step.")
    clip_norm: Annotated[float, Field(gt=0), NUMBER] | None = Field(
        None, description="Gradient norm limit, applied after unscaling."
    )
    ema: Annotated[float, Field(gt=0, lt=1), NUMBER] | None = Field(
        None,
        description="Decay of an exponential moving average of the weights; the average is what is published.",
    )
    init_scale: Annotated[float, Field(gt=0), NUMBER] = Field(65536.0, description="First loss scale (fp16-mixed).")
    growth_interval: PositiveInt = Field(2000, description="Clean steps before the loss scale doubles.")
    deterministic: bool = Field(False, description="torch.use_deterministic_algorithms.")
    channels_last: bool = False
    compile: bool = Field(False, description="torch.compile the model.")
    workers: Annotated[int, Field(ge=0), NUMBER] = Field(0, description="Data loader processes.")
    processes: PositiveInt = Field(
        1,
        description="Processes on this machine, started through torchrun (DDP: NCCL on GPUs, gloo on CPUs).",
    )
    device: Literal["auto", "cpu", "cuda"] = "auto"
    monitor_every: Annotated[int, Field(ge=0), NUMBER] = Field(
        50, description="Sample activation and gradient statistics every N optimizer steps; 0: never."
    )
    threads: PositiveInt | None = Field(
        None,
        description="CPU threads of torch; empty: one per core. Small models are as fast with 1, and do not crawl "
        "when other programs take a core.",
    )


class WeightsSettings(Settings):
    """FP32 master weights out of the checkpoint."""

    rounded_masters: Literal["warn", "error", "ignore"] = Field(
        "warn",
        description="What to do when every weight is exactly representable in FP16 (a sign of .half().float()).",
    )


class QatSettings(Settings):
    """Quantisation-aware training by TensorRT's Q/DQ rules."""

    backend: Literal["native", "modelopt"] = "native"
    epochs: Annotated[int, Field(ge=0), NUMBER] = Field(
        2, description="Fine-tuning passes; 0 is post-training quantisation."
    )
    lr: Annotated[float, Field(gt=0), NUMBER] = Field(1e-4, description="Peak learning rate of the fine-tuning.")
    batch_size: PositiveInt = 128
    optimizer: Literal["sgd", "adamw"] = "adamw"
    weight_decay: Annotated[float, Field(ge=0), NUMBER] = 0.0
    calibration: Literal["max", "percentile", "entropy", "mse"] = Field(
        "percentile", description="How activation ranges are found from data."
    )
    percentile: Annotated[float, Field(gt=50, le=100), NUMBER] = Field(
        99.99, description="For calibration: percentile."
    )
    calibration_samples: PositiveInt = Field(512, description="Training samples (unaugmented order) for calibration.")
    freeze_ranges_after: Fraction = Field(
        0.5, description="Part of the fine-tuning after which activation ranges stop following the data."
    )
    exclude: tuple[str, ...] = Field((), description="Module name patterns (fnmatch) that stay unquantised.")
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads: PositiveInt | None = Field(None, description="CPU threads of torch; empty: one per core.")


class ExportSettings(Settings):
    """ONNX export at one opset, with named dynamic axes, and the proof of the file."""

    opset: Annotated[int, Field(ge=13, le=21), NUMBER] = 17
    input_names: tuple[str, ...] = Field((), description="Default: the argument names of the model's forward.")
    output_names: tuple[str, ...] = Field(
        (), description='Default: the keys of a dict output, else "output", "output_1", ...'
    )
    dynamic_axes: dict[str, dict[Annotated[int, NUMBER], AxisName]] | None = Field(
        None,
        description="tensor: {axis: name}. Default: axis 0 of every input and output is `batch`; {}: all fixed.",
    )
    tolerance: Annotated[float, Field(gt=0), NUMBER] = Field(
        1e-3, description="Largest relative error allowed between torch and onnxruntime: ||a-b|| / ||b||."
    )


class PlanSettings(Settings):
    """Which node computes in which precision."""

    precisions: tuple[Literal["fp16", "int8"], ...] = Field(("fp16", "int8"), description="Which models to make.")
    keep_io_types: bool = Field(True, description="Network inputs and outputs stay FP32.")
    pin: dict[str, Literal["fp32", "fp16"]] = Field(
        {}, description="ONNX node name pattern (fnmatch): precision that the user insists on."
    )
    data_max: Annotated[float, Field(gt=0), NUMBER] = Field(
        512.0, description="A node whose FP32 values exceed this stays FP32 (ModelOpt AutoCast's default)."
    )
    init_max: Annotated[float, Field(gt=0), NUMBER] = Field(
        65504.0, description="A node whose weights exceed this stays FP32 (the largest finite FP16 value)."
    )
    calibration_samples: PositiveInt = 64
    max_drop: Annotated[float, Field(ge=0), NUMBER] | None = Field(
        None,
        description="Search the fewest FP32 nodes that keep the loss within this: points of the task's main metric, "
        "or percent of output error without a task.",
    )
    budget: Annotated[int, Field(ge=2), NUMBER] = Field(200, description="Model evaluations of that search at most.")
    prove_guards: bool = Field(
        True, description="Build the converted model and see that FP32 nodes stay FP32 (where TensorRT is installed)."
    )
    ptq: bool = Field(False, description="Without a Q/DQ model: make the INT8 model by calibration, without training.")


class ShapeRange(Settings):
    """min/opt/max of one input, one entry per axis."""

    min: tuple[PositiveInt, ...]
    opt: tuple[PositiveInt, ...]
    max: tuple[PositiveInt, ...]

    @model_validator(mode="after")
    def _ordered(self) -> ShapeRange:
        if not len(self.min) == len(self.opt) == len(self.max):
            raise ValueError("min, opt and max need the same number of axes")
        if any(not a <= b <= c for a, b, c in zip(self.min, self.opt, self.max, strict=True)):
            raise ValueError("each axis needs min <= opt <= max")
        return self


class BuildSettings(Settings):
    """TensorRT engines."""

    backend: Literal["auto", "tensorrt_rtx", "tensorrt", "trtexec"] = Field(
        "auto", description="auto: tensorrt, else tensorrt_rtx (builds without a GPU)."
    )
    engines: tuple[Literal["fp32", "fp16", "int8"], ...] = ("fp32", "fp16", "int8")
    compute_capability: Annotated[str, Field(pattern=r"^\d{1,2}\.\d$", coerce_numbers_to_str=True)] = Field(
        "8.9", description="Target of an ahead-of-time build, for example 8.6, 8.9 or 12.0."
    )
    shapes: dict[str, ShapeRange] = Field(
        {}, description="Optimisation profile per input. Default: dynamic axes 1 / batch / 2*batch."
    )
    opt_batch: PositiveInt = Field(8, description="Batch that the default profile optimises for.")
    timeout_minutes: Annotated[float, Field(gt=0), NUMBER] = Field(
        30.0, description="Per engine; a build process that hangs is killed."
    )


class EvaluateSettings(Settings):
    """The same test data through every artefact."""

    batch_size: PositiveInt = 100
    samples: PositiveInt | None = Field(None, description="Only the first N test samples; empty: all.")
    device: Literal["auto", "cpu", "cuda"] = "auto"


class CompareSettings(Settings):
    """Layer precision and accuracy, stage by stage."""

    worst_samples: Annotated[int, Field(ge=0), NUMBER] = Field(
        5, description="How many of the worst samples each row names."
    )


class StageTable(Settings):
    """The stages that the chain has. A stage that is named with nothing behind it runs with its defaults."""

    train: TrainSettings | None = None
    weights: WeightsSettings | None = None
    qat: QatSettings | None = None
    export: ExportSettings | None = None
    plan: PlanSettings | None = None
    build: BuildSettings | None = None
    evaluate: EvaluateSettings | None = None
    compare: CompareSettings | None = None

    @classmethod
    def complete(cls) -> StageTable:
        return cls(**{name: {} for name in STAGE_ORDER})  # type: ignore[arg-type]

    def named(self) -> tuple[tuple[str, Settings], ...]:
        """(name, settings) of the stages that the chain has, in the order in which they run."""
        return tuple((n, getattr(self, n)) for n in STAGE_ORDER if getattr(self, n) is not None)


class StartSettings(Settings):
    """Where the chain starts, when not from nothing. Exactly one of them."""

    checkpoint: str | None = Field(None, description="A torch checkpoint (read with weights_only).")
    weights: str | None = Field(None, description="FP32 weights as safetensors.")
    onnx: str | None = Field(None, description="An FP32 ONNX model of any origin.")
    onnx_qat: str | None = Field(None, description="With onnx: its Q/DQ version.")

    @model_validator(mode="after")
    def _one(self) -> StartSettings:
        given = [n for n in ("checkpoint", "weights", "onnx") if getattr(self, n) is not None]
        if len(given) != 1:
            raise ValueError(f"name exactly one of checkpoint, weights, onnx (found {', '.join(given) or 'none'})")
        if self.onnx_qat is not None and self.onnx is None:
            raise ValueError("onnx_qat needs onnx beside it")
        return self


class PipelineSettings(Settings):
    """One pipeline.yaml."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] = Field(
        "pipeline", description="Names the run folder. Default: the folder of the file."
    )
    task: str | None = Field(None, description='The user\'s code: "task.py:FashionTask" or "package.module:Class".')
    task_args: dict[str, Any] = Field({}, description="Keyword arguments for the task's constructor.")
    watch: tuple[str, ...] = Field(
        (), description="Data files (globs) whose change makes the stages that read data stale."
    )
    data: str | None = Field(
        None,
        description="Without a task: an npz with one array per ONNX input, and optionally `targets` (class indices).",
    )
    seed: Annotated[int, Field(ge=0, lt=2**32), NUMBER] = 0
    start: StartSettings | None = None
    stages: StageTable = Field(default_factory=StageTable.complete)
    gate: dict[str, Any] | None = Field(None, description="Limits for `deploychain gate`.")

"""Stage `evaluate`: the same test data through every artefact of the chain, measured against the FP32 reference."""

from __future__ import annotations

from deploychain.job import Job, Stage, StageResult
from deploychain.settings import EvaluateSettings

_ENGINES = ("engine-fp32", "engine-fp16", "engine-int8")
_MODELS = ("checkpoint", "weights", "qat-weights", "onnx-fp32", "onnx-qat", "onnx-fp16", "onnx-int8", *_ENGINES)


def run(job: Job[EvaluateSettings]) -> StageResult:
    """See `evaluating.run`; numpy is loaded only when the stage runs."""
    from deploychain.stages.evaluating import run as evaluate

    return evaluate(job)


STAGE = Stage(
    name="evaluate",
    version=2,
    requires=(),
    accepts=(*_MODELS, "quantizers", "train-log", "engine-evidence", "data"),
    produces=("eval-reports",),
    facts=("torch", "onnx", "onnxruntime", "tensorrt", "tensorrt_rtx", "gpu", "machine"),
    uses_task=False,  # a chain that starts from a foreign ONNX file has none
    run=run,
    needs=("onnx", "onnxruntime"),
)

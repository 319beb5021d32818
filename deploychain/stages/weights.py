"""weights: the FP32 master weights of a checkpoint, checked."""

from __future__ import annotations

import json
from typing import Any

from deploychain.errors import ArtifactError
from deploychain.job import Job, Stage, StageResult
from deploychain.settings import WeightsSettings


def run(job: Job[WeightsSettings]) -> StageResult:
    """Take the weights (the average, where EMA is on) out of the checkpoint, check them, write safetensors.

    Raises:
        ArtifactError: unreadable, names or shapes are not the model's, non-finite values, or rounded masters where
            the settings make that an error.
    """
    from deploychain.backends import torch_model, torch_weights

    path = job.input("checkpoint")
    model = torch_model.new_model(job.need_task().load())
    expected = model.state_dict()
    found = torch_model.read_checkpoint(path, expected)
    for text in found.notes:
        job.note(text)
    torch_model.check_against(found.state, expected, path)
    bad = torch_weights.non_finite(found.state)
    if bad:
        raise ArtifactError(
            f"the weights hold NaN or infinite values: {torch_model.some(bad)}",
            where=str(path),
            remedy="take an earlier checkpoint, or train again with a lower lr or clip_norm",
        )
    state, converted = torch_weights.to_fp32(found.state)
    for dtype, names in converted.items():
        if dtype in ("float16", "bfloat16"):
            job.note(f"warning: the checkpoint stores {dtype} weights ({torch_model.some(names)}): no FP32 masters")
    report = torch_weights.weights_report(model, state, found.origin)
    report["converted"] = converted
    _judge(job, report, str(path))
    torch_model.write_safetensors(job.out / "weights.safetensors", state)
    (job.out / "weights-report.json").write_text(json.dumps(report, indent=2), encoding="utf-8")
    return StageResult(
        {"weights": "weights.safetensors", "weights-report": "weights-report.json"},
        {
            "parameters": report["parameters"],
            "origin": report["origin"],
            "warnings": sum(
                bool(report[key])
                for key in (
                    "converted",
                    "rounded_masters",
                    "batchnorm_overflow",
                    "batchnorm_vanish",
                    "weights_overflow",
                )
            ),
        },
    )


def _judge(job: Job[WeightsSettings], report: dict[str, Any], where: str) -> None:
    rounded = report["rounded_masters"]
    if rounded and job.settings.rounded_masters != "ignore":
        text = f"every weight is exactly representable in {rounded}: these are rounded copies, not FP32 masters"
        if job.settings.rounded_masters == "error":
            raise ArtifactError(
                text, where=where, remedy="start from the FP32 state dict, or set rounded_masters: warn"
            )
        job.note(f"warning: {text}")
    for key, what in (
        ("batchnorm_overflow", "above 65504 becomes infinite"),
        ("batchnorm_vanish", "at or below 2^-25 becomes zero"),
    ):
        if report[key]:
            names = ", ".join(f["name"] for f in report[key][:3])
            more = f" and {len(report[key]) - 3} more" if len(report[key]) > 3 else ""
            job.note(f"warning: BatchNorm variance {what} in FP16: {names}{more} (fold BatchNorm, or keep it in FP32)")
    if report["weights_overflow"]:
        job.note(f"warning: weights above 65504 become infinite in FP16: {', '.join(report['weights_overflow'][:3])}")


STAGE = Stage(
    name="weights",
    version=1,
    requires=("checkpoint",),
    accepts=(),
    produces=("weights", "weights-report"),
    facts=(),
    uses_task=True,
    run=run,
    needs=("torch", "safetensors"),
)

"""Stage `export`: the FP32 and the QAT model as ONNX files that were proved against torch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from deploychain.errors import StageError
from deploychain.job import Job, Stage, StageResult
from deploychain.records import to_json
from deploychain.settings import ExportSettings

if TYPE_CHECKING:
    from deploychain.backends.onnx_export import Export
    from deploychain.backends.onnx_qdq import QdqFinding

REPORT_SCHEMA = "deploychain.export/1"
REPORT_FILE = "export-report.json"
EXAMPLE_SAMPLES = 2


def run(job: Job[ExportSettings]) -> StageResult:
    """Export every model that the chain has, prove the files, check the Q/DQ of the QAT model.

    Raises:
        ConfigError: names or axes that the model does not have.
        StageError: the exporter cannot do it, the file does not do what the model does, or its Q/DQ break
            TensorRT's rules; node and module are named.
    """
    from deploychain.backends.onnx_export import export
    from deploychain.backends.torch_data import make_loader, split_batch
    from deploychain.backends.torch_model import build_model, require_fp32
    from deploychain.backends.torch_qat import load_quantised

    settings = job.settings
    task = job.need_task().load()
    given = getattr(task, "example", None)
    if callable(given):
        example = given()
    else:
        example = split_batch(next(iter(make_loader(task, "test", EXAMPLE_SAMPLES, limit=EXAMPLE_SAMPLES))))[0]
    weights = require_fp32(job.input("weights"))
    models: dict[str, Any] = {"fp32": lambda: build_model(task, weights)}
    if job.has("qat-weights"):
        models["qat"] = lambda: load_quantised(task, job.input("qat-weights"), job.input("quantizers"))
    artifacts: dict[str, str] = {}
    report: dict[str, Any] = {"schema": REPORT_SCHEMA, "opset": settings.opset, "models": {}, "nodes": {}}
    summary: dict[str, Any] = {"opset": settings.opset}
    for name, build in models.items():
        with job.progress(f"export {name}") as progress:
            progress.update(0, 1)
            file = f"model.{name}.onnx"
            made = export(
                build(),
                example,
                job.out / file,
                opset=settings.opset,
                names=settings.input_names,
                output_names=settings.output_names,
                dynamic_axes=settings.dynamic_axes,
                tolerance=settings.tolerance,
            )
            progress.update(1, 1, error=made.proof.worst)
        for line in (*made.warnings, *made.proof.notes):
            job.note(f"{name}: {line}")
        findings = _check_quantisers(job, made) if name == "qat" else []
        artifacts[f"onnx-{name}"] = file
        report["models"][name] = _describe(made, findings)
        report["nodes"] |= made.nodes
        summary[name] = {
            "checks": len(made.proof.checks),
            "worst_relative_error": made.proof.worst,
            "size_bytes": made.path.stat().st_size,
            "qdq_findings": len(findings),
        }
    text = json.dumps(to_json(report), indent=1, allow_nan=False) + "\n"
    (job.out / REPORT_FILE).write_text(text, encoding="utf-8")
    artifacts["export-report"] = REPORT_FILE
    return StageResult(artifacts, summary)


def _check_quantisers(job: Job[ExportSettings], made: Export) -> list[QdqFinding]:
    """The Q/DQ contract on the exported file: errors stop the stage, the rest is noted."""
    from deploychain.backends.onnx_graph import load
    from deploychain.backends.onnx_qdq import check_qdq

    model = load(made.path)
    findings = check_qdq(model, made.nodes)
    if not any(node.op_type == "QuantizeLinear" for node in model.graph.node):
        raise StageError("the exported QAT model has no QuantizeLinear", where=made.path.name)
    errors = [f for f in findings if f.severity == "error"]
    for finding in findings:
        if finding.severity != "error":
            job.note(f"{finding.node}: {finding.detail}")
    if errors:
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        module = f" of {first.module}" if first.module else ""
        raise StageError(f"Q/DQ{module}: {first.detail}{more}", where=first.node, remedy=first.remedy)
    return findings


def _describe(made: Export, findings: list[QdqFinding]) -> dict[str, Any]:
    return {
        "file": made.path.name,
        "opset": made.proof.opset,
        "inputs": list(made.inputs),
        "outputs": list(made.outputs),
        "dynamic_axes": {tensor: {str(a): n for a, n in axes.items()} for tensor, axes in made.dynamic_axes.items()},
        "checks": made.proof.checks,
        "worst_relative_error": made.proof.worst,
        "how": "torch (CPU, eager) against onnxruntime (CPU, Q/DQ unfused)",
        "exporter": "torch.onnx.export(dynamo=False)",
        "warnings": [*made.warnings, *made.proof.notes],
        "qdq": findings,
    }


STAGE = Stage(
    name="export",
    version=1,
    requires=("weights",),
    accepts=("qat-weights", "quantizers"),
    produces=("onnx-fp32", "onnx-qat", "export-report"),
    facts=("torch", "onnx", "onnxruntime"),
    uses_task=True,
    run=run,
    needs=("torch", "onnx", "onnxruntime", "safetensors"),
)

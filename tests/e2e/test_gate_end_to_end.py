"""Train, accept a baseline, damage the model, see the gate fail on the right stage and node; restore, see it pass."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

for name in ("torch", "onnx", "onnxruntime", "sklearn"):
    pytest.importorskip(name, reason=f"{name} of the [chain] extra is not installed")
pytest.importorskip("tensorrt_rtx", reason="tensorrt_rtx, which builds the engine, is not installed")

pytestmark = [pytest.mark.chain, pytest.mark.rtx, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
PIPELINE = """
name: digits
task: task.py:DigitsTask
stages:
  train: {epochs: 8, batch_size: 64, lr: 0.005, precision: fp32, threads: 1}
  weights:
  qat: %s
  export:
  plan: {precisions: [int8]}
  build: {engines: [int8]}
  evaluate:
  compare:
gate:
  accuracy:
    # 360 test images: three of them are what can be told from none, so the limits are as wide
    - {stage: [weights, onnx-fp32], metric: top1, retention: 99.9}
    - {stage: [qat, onnx-int8], metric: top1, retention: 97, practical: 4}
    - {stage: "*", metric: top1, baseline_retention: 97, required: false}
  layers:
    - {engine: int8, max_lost: 0, max_lowered: 0, max_unknown: 2}
  waivers:
    - {stage: engine-int8, kind: missing, reason: this machine builds engines and cannot run them}
"""
# The classifier stays out of INT8, and one pass of fine-tuning mends the rest.
HEALTHY = '{epochs: 1, batch_size: 64, threads: 1, exclude: ["head"]}'
# The classifier is quantised too, ranges are cut at the 60th percentile, and nothing is fine-tuned.
DAMAGED = "{epochs: 0, batch_size: 64, threads: 1, percentile: 60}"


def deploychain(folder: Path, *arguments: str) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "deploychain", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout if done.returncode in (0, 1) else done.stdout + done.stderr


def build(folder: Path, qat: str) -> None:
    (folder / "pipeline.yaml").write_text(PIPELINE % qat)
    code, text = deploychain(folder, "run", "pipeline.yaml", "--run-dir", "run")
    assert code == 0, text


def judged(folder: Path) -> tuple[int, dict[str, Any]]:
    code, text = deploychain(folder, "gate", "run", "--json")
    return code, json.loads(text)


def test_a_quantised_sensitive_layer_is_caught_and_its_removal_passes(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pipelines" / "digits" / "task.py", tmp_path)
    build(tmp_path, HEALTHY)
    code, document = judged(tmp_path)
    assert (code, document["verdict"]) == (3, "not-comparable")  # nothing was accepted yet

    code, text = deploychain(tmp_path, "gate", "accept", "run", "--reason", "first measured model", "--author", "test")
    assert code == 0, text
    assert (tmp_path / "gate-baseline.json").is_file()
    code, document = judged(tmp_path)
    assert (code, document["verdict"]) == (0, "pass"), document

    build(tmp_path, DAMAGED)
    code, document = judged(tmp_path)
    assert (code, document["verdict"]) == (1, "fail"), document
    errors = [f for f in document["findings"] if f["severity"] == "error"]
    # FP32 stages are untouched; the quantised ones broke, and the node that was quantised is named with its module.
    assert {f["stage"] for f in errors} == {"qat", "onnx-int8", "engine-int8"}
    lost = next(f for f in errors if f["stage"] == "onnx-int8" and f["kind"] == "retention")
    assert lost["value"] < lost["limit"] == 97
    assert "/head/Gemm" in lost["node"].split(" + ")
    lowered = [f for f in errors if f["stage"] == "engine-int8" and f["kind"] == "lowered-precision"]
    assert any("/head/Gemm" in f["node"].split(" + ") and f["module"] == "head" for f in lowered), lowered

    build(tmp_path, HEALTHY)
    code, document = judged(tmp_path)
    assert (code, document["verdict"]) == (0, "pass"), document

    code, text = deploychain(tmp_path, "report", "run", "-o", "report.html")
    assert code == 0, text
    assert "first measured model" in (tmp_path / "report.html").read_text()

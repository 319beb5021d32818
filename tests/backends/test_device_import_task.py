"""The task's own metrics are taken at home, on the outputs that the device wrote."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the task is PyTorch code")

from deploychain.device.fingerprint import Fingerprint
from deploychain.device.importing import import_result
from deploychain.device.result import DeviceResult, EngineResult, write_result
from deploychain.precision import Precision
from deploychain.records import EngineReport, EvalReport
from deploychain.workspace import Workspace

pytestmark = pytest.mark.chain

TASK = """
import numpy as np, torch
class Toy:
    def model(self): return torch.nn.Linear(2, 3)
    def train_data(self): return self.test_data()
    def test_data(self): return torch.utils.data.TensorDataset(torch.zeros(8, 2), torch.arange(8.0))
    def loss(self, outputs, targets): return outputs.mean()
    def metrics(self, outputs, targets):
        return {"distance": float(np.abs(next(iter(outputs.values()))[:, 0] - np.asarray(targets)).mean())}
"""


def make(tmp_path: Path) -> Path:
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "pipeline.yaml").write_text("name: toy\ntask: task.py:Toy\nstages: {train: }\n")
    workspace = Workspace(tmp_path / "run")
    work = workspace.work_dir("export")
    (work / "m.onnx").write_bytes(b"model")
    workspace.publish(
        work, stage="export", key="k", causes={}, artifacts={"onnx-fp32": "m.onnx"}, summary={}, notes=(), seconds=1.0
    )
    outputs = {"y": np.arange(8, dtype=np.float32)[:, None] + np.float32(0.5)}
    np.savez_compressed(tmp_path / "device-outputs-fp32.npz", **outputs)
    digest = hashlib.sha256((tmp_path / "device-outputs-fp32.npz").read_bytes()).hexdigest()
    engine = EngineResult(
        "fp32",
        "built",
        EngineReport("fp32", Precision.FP32, True),
        evaluation=EvalReport("engine-fp32", ran=True, reference="onnx-fp32", samples=8),
        outputs="device-outputs-fp32.npz",
        outputs_sha256=digest,
    )
    where = Fingerprint("TensorRT", "10.3.0.26", "Orin", "8.7", 32, "aarch64", "36.4.3", "x", "none")
    result = DeviceResult(
        schema="deploychain.device-result/1",
        bundle="toy",
        bundle_sha256="0" * 64,
        created="2026-01-01T00:00:00Z",
        fingerprint=where,
        backend="trtexec 10.3.0.26",
        jetpack="6.2",
        power_mode=None,
        clocks="unknown",
        engines=(engine,),
        models={"models/onnx-fp32/model.onnx": hashlib.sha256(b"model").hexdigest()},
        evals=(EvalReport("onnx-fp32", ran=True, samples=8, metrics={"distance": 0.0}),),
        directions={"distance": "lower"},
        samples=8,
    )
    path = tmp_path / "device-result.json"
    write_result(result, path)
    return path


def test_metrics_are_taken_on_the_devices_outputs(tmp_path: Path) -> None:
    imported = import_result(make(tmp_path), tmp_path / "run", pipeline=tmp_path / "pipeline.yaml")
    row = {r.stage: r for r in imported.comparison.evals}["engine-fp32"]
    assert row.metrics == {"distance": pytest.approx(0.5)}  # every output is its target plus one half


@pytest.mark.parametrize("fault", ["missing", "changed"])
def test_outputs_that_are_not_the_devices_give_no_metric(tmp_path: Path, fault: str) -> None:
    path = make(tmp_path)
    outputs = tmp_path / "device-outputs-fp32.npz"
    if fault == "missing":
        outputs.unlink()
    else:
        np.savez_compressed(outputs, y=np.arange(8, dtype=np.float32)[:, None])
    imported = import_result(path, tmp_path / "run", pipeline=tmp_path / "pipeline.yaml")
    row = {r.stage: r for r in imported.comparison.evals}["engine-fp32"]
    assert row.metrics == {}
    assert any("not taken" in note for note in imported.notes)

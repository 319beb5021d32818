"""What a task's metrics do to the data that they are given stays with them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the [chain] extra")
pytest.importorskip("onnxruntime", reason="needs the [chain] extra")
pytest.importorskip("safetensors", reason="needs the [chain] extra")
import torch
from evaluate_jobs import read_rows, run_stage
from safetensors.torch import save_file

from deploychain.settings import EvaluateSettings
from deploychain.stages import evaluate
from deploychain.task import TaskRef

pytestmark = pytest.mark.chain

TASK = """
import torch
from torch import nn
from torch.utils.data import TensorDataset

class Task:
    lower_is_better = "shifted"
    def model(self): return nn.Linear(2, 2, bias=False)
    def train_data(self): return TensorDataset(torch.eye(2), torch.tensor([1, 2]))
    test_data = train_data
    def loss(self, outputs, targets): return outputs.sum()
    def metrics(self, outputs, targets):
        targets -= 1  # labels count from 1
        return {"shifted": float(targets.sum()), "top1": (outputs["output"].argmax(1) == targets).astype(float)}
"""


def test_metrics_may_write_into_the_targets(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(TASK)
    weight = {"weight": torch.eye(2)}
    torch.save(weight, tmp_path / "c.pt")
    save_file(weight, tmp_path / "w.safetensors")
    files = {"checkpoint": tmp_path / "c.pt", "weights": tmp_path / "w.safetensors"}
    task = TaskRef.parse("task.py:Task", tmp_path, {})
    rows, content = read_rows(run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files, task)[0])
    assert list(rows) == ["train-fp32", "train-amp", "weights"]
    for row in rows.values():
        assert row["metrics"] == {"shifted": 1.0, "top1": 1.0}
    assert content["directions"] == {"shifted": "lower", "top1": "higher"}


def test_a_part_of_the_test_data_is_told(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(TASK)
    torch.save({"weight": torch.eye(2)}, tmp_path / "c.pt")
    task = TaskRef.parse("task.py:Task", tmp_path, {})
    files = {"checkpoint": tmp_path / "c.pt"}
    _, notes, _ = run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(samples=1), files, task)
    assert notes == ["only the first 1 test samples are evaluated (evaluate.samples)"]

"""What a chain is given instead of making it: weights, checkpoints, data, and a task's own mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the [chain] extra")
pytest.importorskip("onnxruntime", reason="needs the [chain] extra")
pytest.importorskip("safetensors", reason="needs the [chain] extra")
import onnx
import torch
from evaluate_jobs import run_stage
from onnx import parser
from safetensors.torch import save_file
from torch import nn

from deploychain.backends.torch_checkpoint import load_state
from deploychain.backends.torch_model import check_against, require_fp32, trainable_model, write_safetensors
from deploychain.errors import ArtifactError, StageError
from deploychain.settings import EvaluateSettings, PlanSettings, TrainSettings
from deploychain.stages import evaluate, plan, train
from deploychain.task import TaskRef

pytestmark = pytest.mark.chain


class Linear:
    def model(self) -> nn.Module:
        return nn.Linear(2, 2, bias=False)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.eye(2).half(), "float16: no FP32 weights"),
        (torch.tensor([[1.0, float("nan")], [0, 1]]), "NaN or infinite"),
    ],
    ids=["half", "nan"],
)
def test_weights_that_are_no_fp32_weights_are_refused(weight: torch.Tensor, message: str, tmp_path: Path) -> None:
    save_file({"weight": weight}, tmp_path / "w.safetensors")
    with pytest.raises(ArtifactError, match=message):
        require_fp32(tmp_path / "w.safetensors")


def test_an_integer_tensor_is_no_weight(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="weight is int64, the model has float32"):
        check_against({"weight": torch.eye(2).long()}, {"weight": torch.eye(2)}, tmp_path)


class Bomb:
    def __reduce__(self) -> tuple[object, ...]:
        import os

        return os.system, ("exit 3",)


def test_a_blocked_global_is_told_as_pickled_objects(tmp_path: Path) -> None:
    torch.save({"model": Bomb()}, tmp_path / "bomb.pt")
    with pytest.raises(ArtifactError, match=r"pickled Python objects \(posix\.system\), which are never executed"):
        load_state(tmp_path / "bomb.pt")


def test_a_cut_checkpoint_is_damaged(tmp_path: Path) -> None:
    torch.save({"weight": torch.zeros(64, 64)}, tmp_path / "c.pt")
    data = (tmp_path / "c.pt").read_bytes()
    (tmp_path / "c.pt").write_bytes(data[: len(data) // 2])
    with pytest.raises(ArtifactError, match="damaged") as caught:
        load_state(tmp_path / "c.pt")
    assert caught.value.remedy


class Frozen(Linear):
    def model(self) -> nn.Module:
        return super().model().requires_grad_(False)


class Half(Linear):
    def model(self) -> nn.Module:
        return super().model().half()


class Nothing(Linear):
    def model(self) -> nn.Module:
        return None  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("task", "message"),
    [(Frozen(), "nothing to train"), (Half(), "weight are float16"), (Nothing(), r"model\(\) returned NoneType")],
    ids=["frozen", "half", "none"],
)
def test_a_model_that_cannot_be_trained_says_why(task: Linear, message: str) -> None:
    with pytest.raises(StageError, match=message) as caught:
        trainable_model(task)  # type: ignore[arg-type]
    assert caught.value.where == type(task).__name__ and caught.value.remedy


def test_a_loss_without_gradient_says_so(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(
        "import torch\nfrom torch.utils.data import TensorDataset\n"
        "class Task:\n"
        "    def model(self): return torch.nn.Linear(2, 2)\n"
        "    def train_data(self): return TensorDataset(torch.zeros(8, 2), torch.zeros(8))\n"
        "    test_data = train_data\n"
        "    def loss(self, outputs, targets): return outputs.detach().mean()\n"
        "    def metrics(self, outputs, targets): return {'zero': 0.0}\n"
    )
    task = TaskRef.parse("task.py:Task", tmp_path, {})
    with pytest.raises(StageError, match="without a gradient"):
        run_stage(train.STAGE, tmp_path, TrainSettings(epochs=1, precision="fp32"), {}, task)


def save_model(path: Path) -> Path:
    onnx.save(
        parser.parse_model(
            '<ir_version: 8, opset_import: ["" : 17]> g (float[N,3] image) => (float[N,3] y) { y = Relu(image) }'
        ),
        path,
    )
    return path


def test_labels_outside_the_classes_are_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", image=np.eye(3, dtype=np.float32), targets=np.array([1, 2, 3]))
    files = {"onnx-fp32": save_model(tmp_path / "m.onnx"), "data": tmp_path / "d.npz"}
    with pytest.raises(StageError, match="targets run from 1 to 3, the output has 3 classes"):
        run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files)


def test_data_under_another_name_is_not_taken_by_order(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", pixels=np.eye(3, dtype=np.float32))
    files = {"onnx-fp32": save_model(tmp_path / "m.onnx"), "data": tmp_path / "d.npz"}
    with pytest.raises(ArtifactError, match="'image' is not in the data, which has pixels"):
        run_stage(plan.STAGE, tmp_path, PlanSettings(), files)


def test_equal_weights_are_equal_bytes(tmp_path: Path) -> None:
    # Two metadata entries would be written in an order that differs from process to process.
    write_safetensors(tmp_path / "w.safetensors", {"weight": torch.eye(2)})
    data = (tmp_path / "w.safetensors").read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert len(header["__metadata__"]) == 1

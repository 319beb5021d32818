"""Evaluation of a chain that has a task: torch, autocast, ONNX, the task's own metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the [chain] extra")
pytest.importorskip("onnx", reason="needs the [chain] extra")
pytest.importorskip("onnxruntime", reason="needs the [chain] extra")
pytest.importorskip("safetensors", reason="needs the [chain] extra")
import onnx
import torch
from evaluate_jobs import read_rows, run_stage
from onnx import parser
from safetensors.torch import save_file

from deploychain.errors import StageError
from deploychain.settings import EvaluateSettings
from deploychain.stages import evaluate
from deploychain.task import TaskRef

pytestmark = pytest.mark.chain

# Two inputs, two outputs (one of them integer), weights given by the test.
TASK = """
import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.head = nn.Linear(3, 3, bias=False)

    def forward(self, image, gain):
        scores = self.head(image * self.scale) * gain
        return {"scores": scores, "top": scores.argmax(1)}

class Pairs(torch.utils.data.Dataset):
    X = torch.tensor([[1.0, 2, 3], [3, 2, 1], [1, 100, 2], [4, 1, 1]])
    Y = torch.tensor([2, 0, 1, 2])
    def __len__(self): return 4
    def __getitem__(self, i): return (self.X[i], torch.ones(1)), self.Y[i]

class NetTask:
    lower_is_better = ("loss",)
    def model(self): return Net()
    def train_data(self): return Pairs()
    def test_data(self): return Pairs()
    def loss(self, outputs, targets): return nn.functional.cross_entropy(outputs["scores"], targets)
    def classes(self, targets): return [("zero", "one", "two")[t] for t in targets]
    def metrics(self, outputs, targets):
        scores = outputs["scores"]
        METRICS
"""
METRICS = """
        hits = (scores.argmax(1) == targets).astype(float)
        shifted = scores - scores.max(1, keepdims=True)
        loss = -(shifted[np.arange(4), targets] - np.log(np.exp(shifted).sum(1)))
        scores[:] = 0  # a task may write into what it is given
        return {"top1": hits, "loss": float(loss.mean())}
"""


def make_task(folder: Path, metrics: str = METRICS, name: str = "task.py") -> TaskRef:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(TASK.replace("METRICS", metrics.strip()))
    return TaskRef.parse(f"{name}:NetTask", folder, {})


def save_weights(folder: Path, scale: float = 1.0) -> dict[str, Path]:
    state = {"scale": torch.full((3,), scale), "head.weight": torch.eye(3)}
    torch.save(state, folder / "checkpoint.pt")
    save_file(state, folder / "weights.safetensors")
    return {"checkpoint": folder / "checkpoint.pt", "weights": folder / "weights.safetensors"}


def save_onnx(path: Path, half: bool) -> Path:
    # Named otherwise than the torch model: the order decides.
    body = (
        "s = Identity(i)  p = Mul(s, g)"
        if not half
        else ("h = Cast<to=10>(i)  k = Cast<to=10>(g)  e = Mul(h, k)  p = Cast<to=1>(e)")
    )
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,3] i, float[N,1] g) => (float[N,3] logits, int64[N] winner)
    {{ {body}  logits = Identity(p)  winner = ArgMax<axis=1, keepdims=0>(p) }}"""
    onnx.save(parser.parse_model(text), path)
    return path


def test_the_whole_table_of_a_task(tmp_path: Path) -> None:
    files = save_weights(tmp_path)
    files["onnx-fp32"] = save_onnx(tmp_path / "m.onnx", half=False)
    files["onnx-fp16"] = save_onnx(tmp_path / "h.onnx", half=True)
    made, notes, _ = run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(batch_size=3), files, make_task(tmp_path))
    rows, content = read_rows(made)
    assert list(rows) == ["train-fp32", "train-amp", "weights", "onnx-fp32", "onnx-fp16"]
    assert notes == [] and content["reference"] == "train-fp32"
    assert content["directions"] == {"top1": "higher", "loss": "lower"}
    assert content["data_sha256"] and content["samples"] == 4
    for row in rows.values():
        assert row["ran"] is True and row["reference"] == "train-fp32" and row["samples"] == 4
        assert row["metrics"]["top1"] == 0.75 and row["per_sample"] == {"top1": [1, 1, 1, 0]}
        assert row["per_class"] == {"top1": {"one": 1.0, "two": 0.5, "zero": 1.0}}
        assert row["sample_classes"] == ["two", "zero", "one", "two"]
        assert row["agreement"] == 1.0 and row["non_finite"] == 0
    assert rows["weights"]["exact"] is True and rows["weights"]["max_abs_error"] == 0.0
    assert rows["onnx-fp32"]["max_abs_error"] == 0.0 and rows["onnx-fp32"]["per_output"]["top"] == {"equal": 1.0}
    assert set(rows["onnx-fp32"]["per_output"]) == {"scores", "top"}
    assert rows["onnx-fp16"]["max_abs_error"] == 0.0  # all these integers are FP16 numbers
    how = {name: row["how"] for name, row in rows.items()}
    assert how["train-fp32"] == how["weights"] == "torch eager FP32, CPU"
    assert how["train-amp"].startswith("torch CPU autocast bf16") and "not those of CUDA" in how["train-amp"]
    assert "FP16 rounding emulated" in how["onnx-fp16"]


def test_autocast_follows_the_training_precision(tmp_path: Path) -> None:
    files = save_weights(tmp_path, scale=1.0009765625)  # 1 + 2^-10: an FP16 number, not a BF16 one
    rows, _ = read_rows(run_stage(evaluate.STAGE, tmp_path / "b", EvaluateSettings(), files, make_task(tmp_path))[0])
    assert rows["train-amp"]["exact"] is False and "bf16" in rows["train-amp"]["how"]
    files["train-log"] = tmp_path / "log.json"
    files["train-log"].write_text('{"precision": "fp16-mixed"}')
    rows, _ = read_rows(run_stage(evaluate.STAGE, tmp_path / "h", EvaluateSettings(), files, make_task(tmp_path))[0])
    assert "autocast fp16" in rows["train-amp"]["how"]
    # In FP16 the products 100 * (1 + 2^-10) round by at most 2^-5; BF16 would be off by 2^-2.
    assert rows["train-amp"]["max_abs_error"] < 0.04


def test_weights_that_are_not_the_checkpoints_are_told(tmp_path: Path) -> None:
    files = save_weights(tmp_path)
    save_file({"scale": torch.ones(3), "head.weight": torch.eye(3) * 1.001}, files["weights"])
    rows, _ = read_rows(run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files, make_task(tmp_path))[0])
    assert rows["weights"]["exact"] is False
    assert "bit equality was expected" in rows["weights"]["notes"][0]
    assert rows["weights"]["relative_error"] == pytest.approx(0.001, rel=1e-3)


def test_a_model_that_mixes_the_samples_of_a_batch_is_told(tmp_path: Path) -> None:
    files = save_weights(tmp_path)
    _, notes, _ = run_stage(evaluate.STAGE, tmp_path / "sound", EvaluateSettings(), files, make_task(tmp_path))
    assert not any("other samples of its batch" in note for note in notes)
    task = make_task(tmp_path)
    source = (tmp_path / "task.py").read_text()
    assert "self.head(image * self.scale)" in source
    mixing = source.replace("self.head(image * self.scale)", "self.head((image - image.mean(0)) * self.scale)")
    (tmp_path / "mixed.py").write_text(mixing)
    mixed = TaskRef.parse("mixed.py:NetTask", tmp_path, {})
    _, notes, _ = run_stage(evaluate.STAGE, tmp_path / "mixed", EvaluateSettings(), files, mixed)
    assert any("depends on the other samples of its batch" in note for note in notes), (task, notes)


def test_a_chain_from_weights_is_measured_against_them(tmp_path: Path) -> None:
    files = save_weights(tmp_path)
    del files["checkpoint"]
    files["onnx-fp32"] = save_onnx(tmp_path / "m.onnx", half=False)
    rows, content = read_rows(run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files, make_task(tmp_path))[0])
    assert list(rows) == ["weights", "onnx-fp32"] and content["reference"] == "weights"


def test_planted_nan_model_is_counted_and_its_metrics_are_unknown(tmp_path: Path) -> None:
    files = save_weights(tmp_path)
    nan = """<ir_version: 8, opset_import: ["" : 17]> g (float[N,3] image, float[N,1] gain)
    => (float[N,3] scores, int64[N] top) <float big = {1e38}>
    { a = Mul(image, big)  b = Mul(a, image)  c = Sub(b, b)  scores = Mul(c, gain)
      top = ArgMax<axis=1, keepdims=0>(image) }"""
    files["onnx-int8"] = tmp_path / "nan.onnx"
    onnx.save(parser.parse_model(nan), files["onnx-int8"])
    rows, _ = read_rows(run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files, make_task(tmp_path))[0])
    row = rows["onnx-int8"]
    # image * 1e38 * image is infinite where image^2 > 3.4: inf - inf is NaN. Elsewhere 0.
    expected = int((np.array([[1, 2, 3], [3, 2, 1], [1, 100, 2], [4, 1, 1]], float) ** 2 * 1e38 > 3.4028e38).sum())
    assert row["non_finite"] == expected == 7
    assert row["max_abs_error"] is None and row["cosine"] is None and row["exact"] is False
    assert row["metrics"]["loss"] is None and any("loss" in n for n in row["notes"])
    assert row["agreement"] == 0.0  # every row holds a NaN: nothing was decided


RAISES_ON_NAN = """
        if not np.isfinite(scores).all(): raise ValueError("Input contains NaN")
        return {"top1": (scores.argmax(1) == targets).astype(float), "loss": 1.0}
"""


def test_metrics_that_raise_on_one_artefact_do_not_hide_the_others(tmp_path: Path) -> None:
    files = save_weights(tmp_path)
    save_file({"scale": torch.ones(3), "head.weight": torch.full((3, 3), float("nan"))}, files["weights"])
    task = make_task(tmp_path, RAISES_ON_NAN)
    rows, _ = read_rows(run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), files, task)[0])
    assert rows["train-fp32"]["metrics"] == {"top1": 0.75, "loss": 1.0}
    row = rows["weights"]
    assert row["ran"] is True and row["metrics"] == {} and row["non_finite"] == 12
    assert any("Input contains NaN" in note for note in row["notes"])


@pytest.mark.parametrize(
    ("metrics", "error", "message"),
    [
        ("return {'top1': 'high'}", StageError, "'top1' is a str, expected a number"),
        ("return 0.9", StageError, "metrics\\(\\) returned float"),
        ("return {}", StageError, "no metric"),
        ("return {'top1': np.ones(3)}", StageError, r"'top1' has shape \[3\] for 4 samples"),
        ("return {'top1': [[1], [1, 2]]}", StageError, "'top1' is a list"),
        ("return {'top1': 1.0}", StageError, "lower_is_better names 'loss'"),
        ("return {'top1': outputs['nothing']}", KeyError, "nothing"),
    ],
)
def test_wrong_metrics_stop_at_the_reference(tmp_path: Path, metrics: str, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), save_weights(tmp_path), make_task(tmp_path, metrics))


def test_nan_metric_is_unknown_not_a_number(tmp_path: Path) -> None:
    metrics = "return {'top1': float('nan'), 'loss': [1.0, float('nan'), 1.0, 1.0]}"
    rows, _ = read_rows(
        run_stage(evaluate.STAGE, tmp_path, EvaluateSettings(), save_weights(tmp_path), make_task(tmp_path, metrics))[0]
    )
    row = rows["train-fp32"]
    assert row["metrics"] == {"top1": None, "loss": None}
    assert row["per_sample"] == {"loss": [1.0, None, 1.0, 1.0]}
    assert any("1 of 4 samples" in note for note in row["notes"])

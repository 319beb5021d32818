"""The weights stage: FP32 masters out of any checkpoint, checked, with names."""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("safetensors", reason="safetensors is not installed")

from evaluate_jobs import run_stage  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from torch import nn  # noqa: E402

from deploychain.backends.torch_model import build_model, model_from_checkpoint, read_checkpoint  # noqa: E402
from deploychain.errors import ArtifactError  # noqa: E402
from deploychain.settings import WeightsSettings  # noqa: E402
from deploychain.stages.weights import STAGE  # noqa: E402
from deploychain.task import TaskRef  # noqa: E402

pytestmark = pytest.mark.chain

TASK = """
from torch import nn

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.head = nn.Linear(6, 4)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.norm(self.embed(x)))

class TiedTask:
    def model(self): return Tied()
    def train_data(self): ...
    def test_data(self): ...
    def loss(self, outputs, targets): ...
    def metrics(self, outputs, targets): ...
"""


@pytest.fixture
def task(tmp_path: Path) -> TaskRef:
    (tmp_path / "task.py").write_text(TASK)
    return TaskRef.parse("task.py:TiedTask", tmp_path, {})


@pytest.fixture
def model(task: TaskRef) -> nn.Module:
    torch.manual_seed(0)
    return task.load().model()  # type: ignore[no-any-return]


def run(folder: Path, task: TaskRef, content: Any, **settings: Any) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Published tensors, report, notes."""
    path = folder / "given.pt"
    torch.save(content, path)
    made, notes, _ = run_stage(STAGE, folder, WeightsSettings(**settings), {"checkpoint": path}, task)
    return load_file(made["weights"]), json.loads(made["weights-report"].read_text()), notes


def test_all_tensors_are_published_bit_for_bit(tmp_path: Path, task: TaskRef, model: nn.Module) -> None:
    state = model.state_dict()
    published, report, notes = run(tmp_path, task, state)
    assert published.keys() == state.keys()
    assert all(torch.equal(published[k], state[k]) for k in state)
    assert notes == []
    assert report["parameters"] == 4 * 6 + 6 + 6 + 4  # the tied matrix counts once
    assert report["shared"] == [["embed.weight", "head.weight"]]
    assert report["rounded_masters"] is None
    again = build_model(task.load(), tmp_path / "weights-out" / "weights.safetensors")
    assert again.head.weight is again.embed.weight and not again.training  # type: ignore[union-attr]


@pytest.mark.parametrize("form", ["model", "state_dict", "ddp", "compile", "ddp+compile", "lightning", "ordered"])
def test_foreign_checkpoints_are_understood(tmp_path: Path, task: TaskRef, model: nn.Module, form: str) -> None:
    state = dict(model.state_dict())
    content: Any = {
        "model": {"model": state, "epoch": 3},
        "state_dict": {"state_dict": state, "optimizer": {"state": {}}},
        "ddp": {f"module.{k}": v for k, v in state.items()},
        "compile": {f"_orig_mod.{k}": v for k, v in state.items()},
        "ddp+compile": {"model": {f"module._orig_mod.{k}": v for k, v in state.items()}},
        "lightning": {"state_dict": {**{f"model.{k}": v for k, v in state.items()}, "criterion.w": torch.ones(2)}},
        "ordered": OrderedDict(state),
    }[form]
    published, _, notes = run(tmp_path, task, content)
    assert all(torch.equal(published[k], state[k]) for k in state)
    assert notes == []
    loaded = model_from_checkpoint(task.load(), tmp_path / "given.pt")
    assert torch.equal(loaded.norm.weight, state["norm.weight"])  # type: ignore[union-attr, arg-type]


def test_an_average_that_is_not_used_is_mentioned(tmp_path: Path, task: TaskRef, model: nn.Module) -> None:
    state = model.state_dict()
    _, _, notes = run(tmp_path, task, {"model": state, "model_ema": state})
    assert len(notes) == 1 and "'model_ema'" in notes[0]


def test_our_own_checkpoint_gives_the_average_where_there_is_one(
    tmp_path: Path, task: TaskRef, model: nn.Module
) -> None:
    state = model.state_dict()
    average = {k: v + 1 for k, v in state.items()}
    content = {"format": "deploychain.checkpoint/1", "epoch": 2, "model": state, "ema": average}
    published, report, _ = run(tmp_path, task, content)
    assert torch.equal(published["norm.bias"], average["norm.bias"])
    assert "weight average" in report["origin"]
    published, _, _ = run(tmp_path, task, {**content, "ema": None})
    assert torch.equal(published["norm.bias"], state["norm.bias"])


@pytest.mark.parametrize(("dtype", "name"), [(torch.float16, "float16"), (torch.bfloat16, "bfloat16")])
def test_rounded_masters_are_found(tmp_path: Path, task: TaskRef, model: nn.Module, dtype: Any, name: str) -> None:
    state = {k: v.to(dtype).float() if v.is_floating_point() else v for k, v in model.state_dict().items()}
    _, report, notes = run(tmp_path, task, state)
    assert report["rounded_masters"] == name
    assert len(notes) == 1 and f"exactly representable in {name}" in notes[0]
    assert run(tmp_path, task, state, rounded_masters="ignore")[2] == []
    with pytest.raises(ArtifactError, match="rounded copies"):
        run(tmp_path, task, state, rounded_masters="error")


def test_one_unrounded_weight_is_enough(tmp_path: Path, task: TaskRef, model: nn.Module) -> None:
    state = {k: v.half().float() if v.is_floating_point() else v for k, v in model.state_dict().items()}
    state["head.bias"][0] += 2.0**-20
    assert run(tmp_path, task, state)[1]["rounded_masters"] is None


def test_half_weights_are_converted_with_a_warning(tmp_path: Path, task: TaskRef, model: nn.Module) -> None:
    published, report, notes = run(tmp_path, task, model.half().state_dict())
    assert all(v.dtype == torch.float32 for v in published.values() if v.is_floating_point())
    assert published["norm.num_batches_tracked"].dtype == torch.int64
    assert "embed.weight" in report["converted"]["float16"]
    assert any("stores float16 weights" in n for n in notes)


def test_batchnorm_variances_that_fp16_loses_are_named(tmp_path: Path, task: TaskRef, model: nn.Module) -> None:
    state = model.state_dict()
    state["norm.running_var"] = torch.tensor([1.0, 65505.0, 2.0**-25, 2.0**-24, 0.0, 65504.0])
    _, report, notes = run(tmp_path, task, state)
    assert report["batchnorm_overflow"] == [{"name": "norm.running_var", "max": 65505.0, "channels": 1}]
    assert report["batchnorm_vanish"] == [{"name": "norm.running_var", "min": 2.0**-25, "channels": 1}]
    assert [n for n in notes if "becomes infinite" in n and "norm.running_var" in n]
    assert [n for n in notes if "becomes zero" in n and "norm.running_var" in n]
    # The limits themselves, checked against torch's own rounding.
    assert float(torch.tensor(2.0**-25).half()) == 0.0 and float(torch.tensor(2.0**-25 * 1.01).half()) > 0.0
    assert float(torch.tensor(65504.0).half()) == 65504.0


def test_non_finite_weights_are_refused_by_name(tmp_path: Path, task: TaskRef, model: nn.Module) -> None:
    state = model.state_dict()
    state["norm.running_mean"][2] = float("inf")
    with pytest.raises(ArtifactError, match=r"NaN or infinite values: norm\.running_mean"):
        run(tmp_path, task, state)
    assert not list((tmp_path / "weights-out").iterdir())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("head.bias"), "missing head.bias"),
        (lambda s: s.update({"extra": torch.ones(1)}), "unknown extra"),
        (lambda s: s.update({"head.bias": torch.ones(7)}), "head.bias is [7], the model has [4]"),
    ],
)
def test_weights_of_another_model_are_told_apart(
    tmp_path: Path, task: TaskRef, model: nn.Module, change: Any, words: str
) -> None:
    state = dict(model.state_dict())
    change(state)
    with pytest.raises(ArtifactError) as caught:
        run(tmp_path, task, state)
    assert words in caught.value.message
    assert caught.value.where.endswith("given.pt")


@pytest.mark.parametrize("content", [[1, 2], {"epoch": 3}, {}])
def test_a_checkpoint_without_weights_is_named(tmp_path: Path, task: TaskRef, content: Any) -> None:
    with pytest.raises(ArtifactError) as caught:
        run(tmp_path, task, content)
    assert "weights" in caught.value.message and caught.value.remedy


@pytest.mark.parametrize("data", [b"", b"not a checkpoint", b"PK\x03\x04" + b"\0" * 100])
def test_garbage_is_one_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(data)
    with pytest.raises(ArtifactError) as caught:
        read_checkpoint(path)
    assert "\n" not in str(caught.value)
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match="not a readable safetensors file"):
        read_checkpoint(path)


def test_a_whole_pickled_model_is_refused(tmp_path: Path, task: TaskRef) -> None:
    with pytest.raises(ArtifactError, match="pickled Python objects") as caught:
        run(tmp_path, task, nn.Sequential(nn.Linear(2, 2)))
    assert "state_dict" in caught.value.remedy


def test_half_safetensors_become_an_fp32_model(tmp_path: Path, task: TaskRef, model: nn.Module) -> None:
    state = {k: v.clone() for k, v in model.half().state_dict().items()}
    save_file(state, tmp_path / "half.safetensors")
    assert build_model(task.load(), tmp_path / "half.safetensors").head.bias.dtype == torch.float32  # type: ignore[union-attr]

"""The train stage in one process: what it publishes, tells and survives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from deploychain import chain  # noqa: E402
from deploychain.backends import torch_device  # noqa: E402
from deploychain.backends.torch_checkpoint import load_state  # noqa: E402
from deploychain.config import load_pipeline  # noqa: E402
from deploychain.console import silent  # noqa: E402
from deploychain.errors import CapabilityError  # noqa: E402
from deploychain.job import Job  # noqa: E402
from deploychain.settings import TrainSettings  # noqa: E402
from deploychain.stages import train  # noqa: E402
from deploychain.task import TaskRef  # noqa: E402

pytestmark = pytest.mark.chain
HERE = Path(__file__).parent


def make(folder: Path, note: Callable[[str], None], task: TaskRef | None = None, **settings: Any) -> Job[TrainSettings]:
    for name in ("out", "scratch"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return Job(
        stage="train",
        settings=TrainSettings(**{"epochs": 2, "batch_size": 16, "lr": 0.02, "device": "cpu", **settings}),
        task=task or TaskRef.parse("training_task.py:BlobTask", HERE, {}),
        seed=0,
        inputs={},
        out=folder / "out",
        scratch=folder / "scratch",
        progress=silent,
        note=note,
    )


def test_what_is_published_agrees(tmp_path: Path) -> None:
    notes: list[str] = []
    result = train.run(make(tmp_path, notes.append, precision="fp16-mixed", mixed_epochs=1, ema=0.9, monitor_every=4))
    log = json.loads((tmp_path / "out" / result.artifacts["train-log"]).read_text())
    state = load_state(tmp_path / "out" / result.artifacts["checkpoint"])
    assert [e["precision"] for e in log["epochs"]] == ["fp32", "fp16-mixed"]
    # 120 samples in batches of 16: 8 steps an epoch.
    assert log["step"] == 16 == sum(e["steps"] + e["skipped_steps"] for e in log["epochs"])
    assert result.summary["skipped_steps"] == len(log["skipped"])
    assert result.summary["scale"] == log["scale_history"][-1][1] == state["scaler"]["scale"]
    assert state["epoch"] == 2 and state["ema"].keys() == state["model"].keys()
    assert log["published"] == "weight average (EMA)"
    lines = [json.loads(x) for x in (tmp_path / "out" / result.artifacts["train-monitor"]).read_text().splitlines()]
    segments = [x for x in lines if x["type"] == "segment"]
    assert [s["first_epoch"] for s in segments] == [1, 2]  # a new one where the precision changes
    assert [x["scaler_enabled"] for x in lines if x["type"] == "start"] == [False, True]


def test_training_gives_the_same_bits_with_and_without_the_monitor(tmp_path: Path) -> None:
    states = []
    for every in (0, 1):
        train.run(make(tmp_path / str(every), lambda text: None, precision="fp16-mixed", monitor_every=every))
        states.append(load_state(tmp_path / str(every) / "out" / "checkpoint.pt")["model"])
    assert all(torch.equal(states[0][k], states[1][k]) for k in states[0])


def test_equal_trainings_are_equal_bytes_but_for_their_times(tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        result = train.run(make(tmp_path / name, lambda text: None, precision="fp16-mixed", ema=0.9, monitor_every=4))
        made.append({kind: (tmp_path / name / "out" / file).read_bytes() for kind, file in result.artifacts.items()})
        times = json.loads(made[-1]["train-times"])
        assert [t["epoch"] for t in times["epochs"]] == [1, 2] and times["resumed_from"] == 0
        assert all(t["seconds"] > 0 and t["images_per_second"] > 0 for t in times["epochs"])
        assert result.summary["images_per_second"] == times["epochs"][-1]["images_per_second"]
    for kind in ("checkpoint", "train-log"):
        assert made[0][kind] == made[1][kind], kind


def test_a_repeated_training_leaves_later_stages_up_to_date(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    (tmp_path / "training_task.py").write_text((HERE / "training_task.py").read_text())
    file = tmp_path / "pipeline.yaml"
    train_settings = "{epochs: 1, batch_size: 16, device: cpu, threads: 1}"
    file.write_text(
        "task: training_task.py:BlobTask\nstages:\n"
        f"  train: {train_settings}\n  weights:\n  evaluate: {{device: cpu}}\n  compare:\n"
    )
    first = chain.run(load_pipeline(file))
    assert [s.status for s in first.stages] == ["ran"] * 4
    again = chain.run(load_pipeline(file), selection=chain.Selection(force=("train",)))
    assert [(s.name, s.status) for s in again.stages] == [
        ("train", "ran"), ("weights", "cached"), ("evaluate", "cached"), ("compare", "cached"),
    ]  # fmt: skip
    other = chain.run(load_pipeline(file, ["train.lr=0.05"]))
    assert [s.status for s in other.stages] == ["ran"] * 4  # other weights do reach them


@pytest.mark.parametrize("where", ["make", "step", "close"])
def test_a_monitor_that_fails_is_told_and_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    from deploychain.backends import amp_monitor

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise OSError("planted")

    if where == "make":
        monkeypatch.setattr(amp_monitor, "monitor", broken)
    else:
        monkeypatch.setattr(amp_monitor.Monitor, where, broken)
    notes: list[str] = []
    result = train.run(make(tmp_path, notes.append, monitor_every=1))
    assert result.summary["metrics"]["top1"] > 0.8
    assert [n for n in notes if "planted" in n and "training goes on without it" in n]


def test_the_audit_of_the_task_is_told(tmp_path: Path) -> None:
    (tmp_path / "training_task.py").write_text(
        (HERE / "training_task.py").read_text()
        + "\n\ndef own_loop(model, scaler, optimizer, data, loss_fn):\n"
        + "    for x, y in data:\n"
        + "        optimizer.zero_grad()\n"
        + "        with torch.autocast('cuda', dtype=torch.float16):\n"
        + "            loss = loss_fn(model(x), y)\n"
        + "        scaler.scale(loss).backward()\n"
        + "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"  # still scaled
        + "        scaler.step(optimizer)\n"
        + "        scaler.update()\n"
    )
    notes: list[str] = []
    task = TaskRef.parse("training_task.py:BlobTask", tmp_path, {})
    train.run(make(tmp_path, notes.append, task, monitor_every=0))
    (found,) = [n for n in notes if n.startswith("audit ")]
    assert found.startswith("audit R07 error: training_task.py:")


def test_auto_is_fp32_on_a_cpu_without_matrix_units(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr(torch_device, "_cpu_has", lambda probe: False)
    mode, remark = torch_device.resolve_precision("auto", cpu)
    assert mode == "fp32" and "FP32" in remark
    mode, remark = torch_device.resolve_precision("fp16-mixed", cpu)
    assert mode == "fp16-mixed" and "emulated" in remark
    monkeypatch.setattr(torch_device, "_cpu_has", lambda probe: True)
    assert torch_device.resolve_precision("auto", cpu)[0] == "bf16-mixed"
    assert torch_device.resolve_precision("bf16-mixed", cpu) == ("bf16-mixed", "")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_a_matter_of_the_environment(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match="torch finds no GPU") as caught:
        train.run(make(tmp_path, lambda text: None, device="cuda"))
    assert caught.value.exit_code == 4


def test_threads_are_given_back(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    result = train.run(make(tmp_path, lambda text: None, threads=before + 1, epochs=1, monitor_every=0))
    assert result.summary["device"] == f"CPU, {before + 1} threads"
    assert torch.get_num_threads() == before

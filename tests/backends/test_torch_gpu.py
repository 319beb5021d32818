"""Training on an NVIDIA GPU: the same rules as on the CPU, and what only exists there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
if not torch.cuda.is_available():
    pytest.skip("needs an NVIDIA GPU", allow_module_level=True)

from training_task import BlobTask  # noqa: E402

from deploychain.backends.torch_checkpoint import ResumeStore, load_state, save_state  # noqa: E402
from deploychain.backends.torch_data import seed_everything  # noqa: E402
from deploychain.backends.torch_device import resolve_device, resolve_precision, tf32_state  # noqa: E402
from deploychain.backends.torch_model import read_checkpoint  # noqa: E402
from deploychain.backends.torch_train import FitPlan, fit  # noqa: E402
from deploychain.errors import StageError  # noqa: E402

pytestmark = [pytest.mark.chain, pytest.mark.gpu]
ROOT = Path(__file__).resolve().parent.parent.parent
PLAN: dict[str, Any] = {
    "epochs": 3, "batch_size": 8, "precision": "fp16-mixed", "lr": 0.02, "ema": 0.9, "clip_norm": 1.0,
    "deterministic": True, "seed": 3,
}  # fmt: skip


def train(task: BlobTask | None = None, **more: Any) -> Any:
    task = task or BlobTask()
    call = {key: more.pop(key) for key in ("store", "after_step", "watcher") if key in more}
    seed_everything(3)
    return fit(task.model(), task, FitPlan(**{**PLAN, **more}), resolve_device("auto"), **call)


def test_auto_takes_bf16_from_capability_8() -> None:
    device = resolve_device("auto")
    assert device.type == "cuda"
    major, _ = torch.cuda.get_device_capability(device)
    expected = "bf16-mixed" if major >= 8 else "fp16-mixed" if major >= 7 else "fp32"
    assert resolve_precision("auto", device)[0] == expected
    assert set(tf32_state(device) or {}) == {"matmul", "convolution"}


def test_skipped_steps_are_counted_and_do_not_move_the_schedule() -> None:
    result = train(init_scale=2.0**40)
    skipped = len(result.log.skipped)
    assert 5 < skipped < 35
    assert result.log.scale_history[-1][1] == 2.0 ** (40 - skipped)
    assert result.state["schedule"]["last_epoch"] == result.log.step - skipped == result.state["ema_updates"]


@pytest.mark.parametrize("precision", ["fp32", "bf16-mixed", "fp16-mixed"])
def test_it_learns_and_keeps_fp32_masters(precision: str, tmp_path: Path) -> None:
    result = train(precision=precision, epochs=5, channels_last=True)
    assert result.log.epochs[-1].metrics["top1"] > 0.9
    assert all(p.dtype == torch.float32 and p.is_cuda for p in result.model.parameters())
    save_state(tmp_path / "x.pt", result.state)
    found = read_checkpoint(tmp_path / "x.pt")
    assert all(not v.is_cuda for v in found.state.values())
    assert torch.equal(found.state["0.weight"], result.published.state_dict()["0.weight"].cpu())


def test_an_interrupted_training_goes_on(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == total * 5 // 6:
            raise KeyboardInterrupt

    store = ResumeStore(tmp_path, lambda text: None)
    with pytest.raises(KeyboardInterrupt):
        train(store=store, after_step=stop)
    resumed, whole = train(store=store), train()
    assert resumed.resumed_from == 2
    for name, value in whole.state["model"].items():
        assert torch.equal(resumed.state["model"][name], value), name
    assert load_state(tmp_path / "epoch-0003.pt")["epoch"] == 3


def test_a_nan_loss_is_told_from_the_first_step() -> None:
    with pytest.raises(StageError, match="step 1, from the first step on"):
        train(BlobTask(fault="nan"), precision="bf16-mixed")


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_compiled_model_trains_and_saves_plain_names(device: str) -> None:
    task = BlobTask()
    seed_everything(3)
    plan = FitPlan(**{**PLAN, "compile": True, "precision": "bf16-mixed"})
    result = fit(task.model(), task, plan, torch.device(device))
    assert result.log.epochs[-1].metrics["top1"] > 0.8
    assert result.state["model"].keys() == BlobTask().model().state_dict().keys()


GROUP = """
import torch
from deploychain.backends import torch_ddp
ranks = torch_ddp.join()
assert torch_ddp.broadcast_text("text") == "text"
device = torch.device("cuda", ranks.local_rank)
model = torch.nn.Linear(3, 3).to(device)
ddp = torch.nn.parallel.DistributedDataParallel(model, device_ids=[ranks.local_rank])
ddp(torch.ones(2, 3, device=device)).sum().backward()
assert torch_ddp.identical(model)
torch_ddp.leave()
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_a_group_on_nccl(tmp_path: Path, processes: int) -> None:
    if torch.cuda.device_count() < processes:
        pytest.skip(f"needs {processes} GPUs")
    script = tmp_path / "group.py"
    script.write_text(GROUP)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            str(processes),
            str(script),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        check=True,
        timeout=180,
    )


def test_two_gpus_train_through_the_stage(tmp_path: Path) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs 2 GPUs")
    from deploychain.console import silent
    from deploychain.job import Job
    from deploychain.settings import TrainSettings
    from deploychain.stages import train as stage
    from deploychain.task import TaskRef

    for name in ("out", "scratch"):
        (tmp_path / name).mkdir()
    settings = TrainSettings(epochs=4, batch_size=15, lr=0.02, precision="fp16-mixed", processes=2)
    task = TaskRef.parse("training_task.py:BlobTask", Path(__file__).parent, {})
    result = stage.run(
        Job("train", settings, task, 1, {}, tmp_path / "out", tmp_path / "scratch", silent, lambda text: None)
    )
    assert result.summary["processes"] == 2 and result.summary["metrics"]["top1"] > 0.9
    log = json.loads((tmp_path / "out" / "train-log.json").read_text())
    assert log["identical_weights"] is True and log["device"].startswith(torch.cuda.get_device_name())

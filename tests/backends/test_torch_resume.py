"""An interrupted training goes on bit for bit; a damaged state is never used."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from training_task import BlobTask  # noqa: E402

from deploychain.backends.torch_checkpoint import INDEX, ResumeStore, load_state, save_state  # noqa: E402
from deploychain.backends.torch_train import FitPlan, fit  # noqa: E402
from deploychain.errors import ArtifactError  # noqa: E402

pytestmark = pytest.mark.chain
CPU = torch.device("cpu")
HERE = Path(__file__).parent
PATHS = [str(HERE), str(HERE.parent.parent)]
PLAN: dict[str, Any] = {
    "epochs": 4, "batch_size": 16, "precision": "fp16-mixed", "mixed_epochs": 3, "optimizer": "adamw", "lr": 0.01,
    "warmup_epochs": 0.5, "accumulate": 2, "clip_norm": 1.0, "ema": 0.9, "init_scale": 2.0**20, "growth_interval": 3,
    "seed": 5,
}  # fmt: skip

# Trains in a process of its own; after two epochs it waits in the middle of the third to be killed.
SCRIPT = """
import json, sys, time
from pathlib import Path
import torch
torch.set_num_threads(1)
from training_task import BlobTask
from deploychain.backends.torch_checkpoint import ResumeStore
from deploychain.backends.torch_train import FitPlan, fit
from deploychain.backends.torch_data import seed_everything
seed_everything(5)
plan = FitPlan(**json.loads(sys.argv[2]))
folder = Path(sys.argv[1])
def wait(done, total):
    if done == total * 5 // 8:
        (folder / "in-epoch-3").touch()
        time.sleep(600)
fit(BlobTask().model(), BlobTask(), plan, torch.device("cpu"), store=ResumeStore(folder, print), after_step=wait)
"""


def train(folder: Path | None, notes: list[str], **more: Any) -> Any:
    from deploychain.backends.torch_data import seed_everything

    seed_everything(5)
    task = BlobTask()
    store = ResumeStore(folder, notes.append) if folder is not None else None
    return fit(task.model(), task, FitPlan(**{**PLAN, **more}), CPU, store=store, note=notes.append)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


STATE = ("model", "ema", "ema_updates", "optimizer", "scaler", "schedule", "epoch", "seed")


def test_after_kill_9_the_result_is_that_of_an_uninterrupted_training(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path), json.dumps(PLAN)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*PATHS, os.environ.get("PYTHONPATH", "")])},
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "in-epoch-3").exists():
            assert child.poll() is None, child.stderr.read().decode() if child.stderr else ""
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(child.pid, signal.SIGKILL)
    finally:
        child.kill()
        child.wait()
        if child.stderr is not None:
            child.stderr.close()
    assert json.loads((tmp_path / INDEX).read_text())["epoch"] == 2
    scaler = load_state(tmp_path / "epoch-0002.pt")["scaler"]
    assert (scaler["scale"], scaler["_growth_tracker"]) != (PLAN["init_scale"], 0)  # else it need not be restored
    notes: list[str] = []
    resumed = train(tmp_path, notes)
    whole = train(None, [])
    torch.set_num_threads(threads)
    assert resumed.resumed_from == 2
    assert notes == ["resumed after epoch 2 of 4"]
    for key in STATE:
        assert same(resumed.state[key], whole.state[key]), key
    assert whole.log.skipped  # the scaler had work to do on both sides of the kill
    assert resumed.log.skipped == whole.log.skipped
    assert resumed.log.scale_history == whole.log.scale_history
    assert resumed.log == whole.log
    assert [t.epoch for t in resumed.times] == [3, 4] and [t.epoch for t in whole.times] == [1, 2, 3, 4]
    assert not same(resumed.state["model"], resumed.state["ema"])


def test_the_comparison_above_can_fail() -> None:
    assert not same(train(None, []).state["model"], train(None, [], seed=6).state["model"])


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "index", "swap"])
def test_a_damaged_state_is_told_and_not_used(tmp_path: Path, harm: str) -> None:
    train(tmp_path, [], epochs=2)
    (kept,) = tmp_path.glob("epoch-*.pt")
    content = bytearray(kept.read_bytes())
    if harm == "flip":
        content[len(content) // 2] ^= 1
        kept.write_bytes(content)
    elif harm == "cut":
        kept.write_bytes(content[: len(content) // 2])
    elif harm == "empty":
        kept.write_bytes(b"")
    elif harm == "index":
        (tmp_path / INDEX).write_text('{"file": "epo')
    else:  # a whole checkpoint of another origin under the recorded name
        torch.save({"format": "other"}, kept)
    notes: list[str] = []
    result = train(tmp_path, notes, epochs=2)
    assert result.resumed_from == 0
    assert len(notes) == 1 and "damaged and not used" in notes[0]
    assert same(result.state["model"], train(None, [], epochs=2).state["model"])


def test_a_file_without_a_record_does_not_count(tmp_path: Path) -> None:
    """Killed between writing the epoch's file and replacing the index: the former epoch is the state."""
    train(tmp_path, [], epochs=2)
    (tmp_path / "epoch-0003.pt").write_bytes(b"half-written")
    notes: list[str] = []
    assert train(tmp_path, notes, epochs=2).resumed_from == 2
    assert notes == ["resumed after epoch 2 of 2"]


def test_a_state_of_other_settings_is_not_used(tmp_path: Path) -> None:
    train(tmp_path, [], epochs=2)
    notes: list[str] = []
    assert train(tmp_path, notes, epochs=2, lr=0.02).resumed_from == 0
    assert "other settings" in notes[0]


def test_the_log_of_an_earlier_release_is_read() -> None:
    """It held the times of the epochs, so that equal trainings had different bytes."""
    from deploychain.backends.torch_plan import TrainLog

    log = train(None, [], epochs=1).log
    old = json.loads(log.dump())
    old["epochs"][0] |= {"seconds": 0.5, "images_per_second": 240.0}
    assert TrainLog.restore(json.dumps(old)) == log


def test_no_temporary_files_remain(tmp_path: Path) -> None:
    train(tmp_path, [], epochs=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["epoch-0002.pt", INDEX]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.pt"
    save_state(path, {"a": 1})

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_state(path, {"a": 2})
    assert load_state(path) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["x.pt"]


class Payload:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return (Path.touch, (self.marker,))


def test_a_pickle_is_refused_and_never_executed(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    torch.save({"model": Payload(marker)}, tmp_path / "evil.pt")
    with pytest.raises(ArtifactError, match="never executed") as caught:
        load_state(tmp_path / "evil.pt")
    assert not marker.exists()
    assert "state_dict" in caught.value.remedy

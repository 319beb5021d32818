"""Training in two processes on gloo: started by the stage, and started by the user's torchrun."""

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

from deploychain.console import NoProgress, silent  # noqa: E402
from deploychain.errors import StageError  # noqa: E402
from deploychain.job import Job  # noqa: E402
from deploychain.settings import TrainSettings  # noqa: E402
from deploychain.stages import train  # noqa: E402
from deploychain.stages.train_job import dump_job, restore_job  # noqa: E402
from deploychain.task import TaskRef  # noqa: E402

pytestmark = pytest.mark.chain
HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    "OMP_NUM_THREADS": "1",
}


def job(folder: Path, notes: list[str], task_args: dict[str, Any] | None = None, **settings: Any) -> Job[TrainSettings]:
    out, scratch = folder / "out", folder / "scratch"
    out.mkdir(parents=True)
    scratch.mkdir()
    return Job(
        stage="train",
        settings=TrainSettings(**{"epochs": 4, "batch_size": 15, "lr": 0.02, "device": "cpu", **settings}),
        task=TaskRef.parse("training_task.py:BlobTask", HERE, task_args or {}),
        seed=1,
        inputs={},
        out=out,
        scratch=scratch,
        progress=silent,
        note=notes.append,
    )


def log_of(made: Job[Any]) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((made.out / "train-log.json").read_text())
    return loaded


def test_two_processes_train_as_well_as_one(tmp_path: Path) -> None:
    notes: list[str] = []
    two = job(tmp_path / "two", notes, processes=2, precision="fp16-mixed", mixed_epochs=1, monitor_every=4)
    result = train.run(two)
    one = job(tmp_path / "one", [], batch_size=30, precision="fp16-mixed", mixed_epochs=1, monitor_every=4)
    single = train.run(one)
    assert result.summary["processes"] == 2
    # 120 samples, 15 for each of 2 processes: 4 optimizer steps an epoch, as with one process and batch 30.
    assert result.summary["steps"] == single.summary["steps"] == 16
    assert log_of(two)["identical_weights"] is True
    both = result.summary["metrics"]["top1"], single.summary["metrics"]["top1"]
    assert min(both) > 0.9 and abs(both[0] - both[1]) <= 0.05
    # Only rank 0 wrote: one checkpoint, one log, and no monitor file of another rank.
    names = ["checkpoint.pt", "train-log.json", "train-monitor.jsonl", "train-times.json"]
    assert sorted(p.name for p in two.out.iterdir()) == names
    files = [p.name for p in two.scratch.rglob("*") if p.is_file()]
    assert not [f for f in files if "rank1" in f or f.endswith(".tmp")], files
    assert any("emulated" in n for n in notes)  # a note of rank 0 arrives, once
    assert len(notes) == len(set(notes))


def test_the_gradient_is_that_of_both_shards(tmp_path: Path) -> None:
    """One step of SGD without randomness: two processes with half the batch each move the weights like one."""
    code = """
import sys, json
import torch
from torch import nn
from torch.utils.data import TensorDataset
from deploychain.backends import torch_ddp
from deploychain.backends.torch_train import FitPlan, fit
class Task:
    def model(self):
        m = nn.Linear(3, 2, bias=False)
        with torch.no_grad(): m.weight.copy_(torch.linspace(-1, 1, 6).reshape(2, 3))
        return m
    def train_data(self):
        g = torch.Generator().manual_seed(0)
        return TensorDataset(torch.randn(12, 3, generator=g), torch.randn(12, 2, generator=g))
    test_data = train_data
    def loss(self, o, t): return nn.functional.mse_loss(o, t)
    def metrics(self, o, t): return {"x": 0.0}
ranks = torch_ddp.join()
plan = FitPlan(epochs=1, batch_size=2, accumulate=3, optimizer="sgd", momentum=0.0, lr=0.1, schedule="constant")
result = fit(Task().model(), Task(), plan, torch.device("cpu"), ranks=ranks)
same = torch_ddp.identical(result.model)
if ranks.writes:
    with open(sys.argv[1], "w") as stream:
        json.dump([same, result.log.step, result.model.weight.tolist()], stream)
torch_ddp.wait_for_all()
torch_ddp.leave()
torch_ddp.end()
"""
    script = tmp_path / "run.py"
    script.write_text(code)
    torchrun(script, tmp_path / "result.json")
    same, steps, weight = json.loads((tmp_path / "result.json").read_text())
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(12, 3, generator=generator).double()
    y = torch.randn(12, 2, generator=generator).double()
    w = torch.linspace(-1, 1, 6).reshape(2, 3).double()
    expected = w - 0.1 * 2 * (x @ w.T - y).T @ x / y.numel()
    assert same is True and steps == 1
    torch.testing.assert_close(torch.tensor(weight).double(), expected, atol=1e-6, rtol=0)


def torchrun(script: Path, *args: Path) -> None:
    done = subprocess.run(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
            str(script), *map(str, args),
        ],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]


def test_an_error_of_one_process_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(StageError) as caught:
        train.run(job(tmp_path, [], {"fault": "raises-on-rank-1"}, processes=2))
    error = caught.value
    assert "the task raised KeyError: 'planted'" in error.message
    assert error.where.startswith("process 1 of 2") and "training_task.py:" in error.where
    assert "\n" not in str(error)
    assert not list((tmp_path / "out").iterdir())


def test_workers_end_when_the_parent_is_killed(tmp_path: Path) -> None:
    made = job(tmp_path, [], processes=2, epochs=100000, monitor_every=0)
    code = (
        "import json, sys; from deploychain.stages import train; from deploychain.stages.train_job import restore_job\n"
        "train.run(restore_job(json.loads(sys.argv[1])))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(dump_job(made))],
        env=ENVIRONMENT,
        start_new_session=True,
    )
    index = made.scratch / "resume.json"
    try:
        wait_for(index.is_file)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    wait_for(lambda: unchanged_for(index, 2.0))  # nobody trains on, once torchrun has shut down


def unchanged_for(path: Path, seconds: float) -> bool:
    before = path.read_text()
    time.sleep(seconds)
    return path.read_text() == before


def wait_for(condition: Any, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


USER_SCRIPT = """
import json, os, sys
from pathlib import Path
from deploychain.backends import torch_ddp
from deploychain.stages import train
from deploychain.stages.train_job import restore_job
spec = json.loads(Path(sys.argv[1]).read_text())
if os.environ["RANK"] != "0":
    refuse = lambda event, args: (_ for _ in ()).throw(RuntimeError(f"wrote {args}")) if (
        event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+") and "/out" in str(args[0])
        or event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+") and "/scratch" in str(args[0])
    ) else None
    sys.addaudithook(refuse)  # a follower that writes into the run fails
    train.follow()
elif spec is None:
    train.announce(None)
else:
    job = restore_job(spec)
    train.announce(job)
    result = train.run(job)
    Path(sys.argv[2]).write_text(json.dumps(dict(result.summary)))
torch_ddp.end()
"""


def test_under_the_users_torchrun_rank_0_announces_and_the_others_follow(tmp_path: Path) -> None:
    script, spec = tmp_path / "user.py", tmp_path / "job.json"
    script.write_text(USER_SCRIPT)
    made = job(tmp_path, [])
    spec.write_text(json.dumps(dump_job(made)))
    torchrun(script, spec, tmp_path / "summary.json")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["processes"] == 2 and summary["metrics"]["top1"] > 0.9
    assert log_of(made)["identical_weights"] is True


def test_under_the_users_torchrun_without_training_nobody_waits(tmp_path: Path) -> None:
    script, spec = tmp_path / "user.py", tmp_path / "job.json"
    script.write_text(USER_SCRIPT)
    spec.write_text("null")
    torchrun(script, spec, tmp_path / "summary.json")


def test_a_job_survives_its_journey(tmp_path: Path) -> None:
    made = job(tmp_path, [], {"samples": 60}, clip_norm=1.0)
    again = restore_job(json.loads(json.dumps(dump_job(made))))
    assert again.settings == made.settings
    assert again.task == made.task
    assert (again.out, again.scratch, again.seed) == (made.out, made.scratch, made.seed)
    with again.progress("x") as progress:
        assert isinstance(progress, NoProgress)

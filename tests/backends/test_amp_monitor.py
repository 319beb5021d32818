"""The monitor: it changes nothing, counts every skip, and names what broke."""

# ruff: noqa: E402  (imports come after importorskip)
from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the monitor watches PyTorch training")

from torch import nn

import deploychain
from deploychain.audit.monitor_log import audit_log, read_log, scale_history
from deploychain.backends.amp_monitor import Monitor, monitor
from deploychain.backends.amp_stats import StatsBatch
from deploychain.errors import CapabilityError

pytestmark = pytest.mark.chain
HALF = torch.float16


class Blow(nn.Module):
    """Overflows float16 at chosen forward passes."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.at = 0, -1

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return x * 1e6 if self.calls == self.at else x * 1.0


class Run:
    """A small convolutional classifier in an AMP loop on the CPU."""

    def __init__(self, optimizer: Any = torch.optim.SGD, scale: float = 2.0**12, **settings: Any) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), Blow(), nn.Flatten(), nn.Linear(288, 10)
        )
        self.optimizer = optimizer(self.model.parameters(), lr=0.1, **settings)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        self.losses: list[float] = []
        self.data = torch.Generator().manual_seed(7)

    def __call__(self, steps: int, watch: Monitor | None, *, zero: bool = True, float_loss: bool = True) -> None:
        for _ in range(steps):
            x = torch.randn(16, 3, 8, 8, generator=self.data)
            y = torch.randint(0, 10, (16,), generator=self.data)
            with torch.autocast("cpu", dtype=HALF):
                out = self.model(x)
                loss = nn.functional.cross_entropy(out, y) if float_loss else out.pow(2).mean()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.losses.append(loss.item())
            if watch is not None:
                watch.step(loss)
            if zero:
                self.optimizer.zero_grad()

    def weights(self) -> Any:
        return torch.cat([p.detach().flatten() for p in self.model.parameters()])


def test_it_is_the_public_name() -> None:
    assert deploychain.monitor is monitor


@pytest.mark.parametrize("every", [1, 3])
def test_training_is_the_same_bits_with_and_without(every: int) -> None:
    plain, watched = Run(), Run()
    plain(10, None)
    with monitor(watched.model, watched.optimizer, watched.scaler, every=every) as watch:
        watched(10, watch)
    assert watched.losses == plain.losses
    assert torch.equal(watched.weights(), plain.weights())


def test_hooks_exist_on_sampled_steps_only_and_none_is_left() -> None:
    run = Run()
    watch = monitor(run.model, run.optimizer, run.scaler, every=4)

    def hooks() -> int:
        return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in run.model.modules())

    seen = []
    for _ in range(9):
        seen.append(hooks() > 0)
        run(1, watch)
    # steps 1, 5 and 9
    assert seen == [True, False, False, False, True, False, False, False, True]
    watch.close()
    assert hooks() == 0
    assert len(run.optimizer._optimizer_step_post_hooks) == 0
    watch.step(torch.tensor(1.0))  # after close: nothing
    assert watch.summary()["steps"] == 9


def test_a_forward_overflow_names_step_and_module(tmp_path: Path) -> None:
    run = Run()
    run.model[3].at = 4
    with monitor(run.model, run.optimizer, run.scaler, every=1, path=tmp_path / "m.jsonl") as watch:
        run(8, watch)
    summary = watch.summary()
    assert summary["skipped_steps"] == [4]
    assert summary["first_non_finite"]["step"] == 4
    assert summary["first_non_finite"]["where"] == "3"  # the planted module, not those after it
    assert summary["first_non_finite"]["kind"] == "activation"
    assert summary["skips"][0]["cause"].startswith("forward")


def test_a_skip_between_samples_is_counted_with_its_cause(tmp_path: Path) -> None:
    run = Run()
    run.model[3].at = 4
    with monitor(run.model, run.optimizer, run.scaler, every=50, path=tmp_path / "m.jsonl") as watch:
        run(20, watch)
    summary = watch.summary()
    assert summary["skipped_steps"] == [4]
    assert summary["skips"][0]["cause"] == "forward: the loss on this rank is not finite"
    assert summary["sampled_steps"] == 1 + 3  # the first, and three after the skip
    changes, skipped, steps = scale_history(read_log(tmp_path / "m.jsonl"))
    assert changes == [(1, 4096.0), (4, 2048.0)]
    assert (skipped, steps) == ([4], 20)


def test_a_gradient_overflow_is_told_from_a_forward_one() -> None:
    run = Run(scale=2.0**30)  # the loss is fine, loss * scale is not
    with monitor(run.model, run.optimizer, run.scaler, every=50) as watch:
        run(3, watch)
    skip = watch.summary()["skips"][0]
    assert skip["step"] == 1
    assert skip["cause"].startswith("backward:") and "finding its level" in skip["cause"]
    assert skip["where"] is not None


def test_a_fused_optimiser_hides_the_skip_until_the_next_read() -> None:
    run = Run(torch.optim.Adam, fused=True)
    run.model[3].at = 3
    with monitor(run.model, run.optimizer, run.scaler, every=50) as watch:
        run(6, watch)
    summary = watch.summary()
    assert summary["skipped_steps"] == [3]
    assert "fused" in summary["skips"][0]["cause"]


def test_dirty_gradients_are_r03() -> None:
    run = Run()
    run.model[3].at = 2
    with monitor(run.model, run.optimizer, run.scaler, every=50) as watch:
        run(15, watch, zero=False)
    found = {f["rule"] for f in watch.summary()["findings"]}
    assert {"R03", "R05"} <= found
    assert watch.summary()["skipped_steps"] == list(range(2, 16))


def test_cleared_gradients_leave_the_cause_unknown() -> None:
    run = Run(scale=2.0**30)
    with monitor(run.model, run.optimizer, run.scaler, every=50) as watch:
        x, y = torch.randn(16, 3, 8, 8), torch.randint(0, 10, (16,))
        with torch.autocast("cpu", dtype=HALF):
            loss = nn.functional.cross_entropy(run.model(x), y)
        run.scaler.scale(loss).backward()
        run.scaler.step(run.optimizer)
        run.scaler.update()
        run.optimizer.zero_grad()
        watch.step(loss)
    assert watch.summary()["skips"][0]["cause"].startswith("unknown: the gradients were cleared")
    # The step was sampled: the hooks saw the gradient before it was cleared.
    assert watch.summary()["first_non_finite"]["kind"] == "activation-gradient"


def test_half_loss_half_parameters_and_no_autocast_are_found() -> None:
    run = Run()
    with monitor(run.model, run.optimizer, run.scaler, every=1) as watch:
        run(1, watch)
        watch.step(torch.tensor(1.0, dtype=HALF))
        run.scaler.scale(run.model(torch.randn(2, 3, 8, 8)).sum()).backward()
        watch.step(torch.tensor(1.0))
    found = {f["rule"] for f in watch.summary()["findings"]}
    assert {"R01", "R27"} <= found
    half = nn.Linear(4, 4).half()
    with monitor(half, torch.optim.SGD(half.parameters(), lr=0.1), torch.amp.GradScaler("cpu")) as watch:
        pass
    assert [f["rule"] for f in watch.summary()["findings"]] == ["R08"]


def test_accumulation_and_evaluation_in_between() -> None:
    run = Run()
    with monitor(run.model, run.optimizer, run.scaler, every=2) as watch:
        for _ in range(4):
            for _ in range(3):
                with torch.autocast("cpu", dtype=HALF):
                    loss = nn.functional.cross_entropy(run.model(torch.randn(4, 3, 8, 8)), torch.randint(0, 10, (4,)))
                run.scaler.scale(loss / 3).backward()
            run.scaler.step(run.optimizer)
            run.scaler.update()
            watch.step(loss)
            run.optimizer.zero_grad()
            with torch.no_grad():
                run.model(torch.full((2, 3, 8, 8), float("inf")))  # not training: not watched
    summary = watch.summary()
    assert summary["steps"] == 4
    assert summary["first_non_finite"] is None


def test_without_a_scaler_and_with_several_optimisers() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in model]
    with monitor(model, optimizers, None, every=2) as watch:
        for _ in range(5):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = model(torch.randn(8, 4)).float().pow(2).mean()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            watch.step(loss)
            for optimizer in optimizers:
                optimizer.zero_grad()
    summary = watch.summary()
    assert (summary["scale"], summary["skipped_steps"], summary["findings"]) == (None, [], [])
    assert summary["loss_dtype"] == "float32"


def test_the_log_is_json_lines_with_a_start_and_an_end(tmp_path: Path) -> None:
    run = Run()
    path = tmp_path / "deep" / "m.jsonl"
    with monitor(run.model, run.optimizer, run.scaler, every=2, path=path, tensorboard=False) as watch:
        run(5, watch)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert records[0]["type"] == "start" and records[-1]["type"] == "end"
    sample = next(r for r in records if r["type"] == "sample")
    kinds = {t["kind"] for t in sample["tensors"]}
    assert kinds == {"activation", "activation-gradient", "gradient"}
    conv = next(t for t in sample["tensors"] if t["name"] == "0" and t["kind"] == "activation")
    assert conv["dtype"] == "float16" and conv["lost"] is None and conv["elements"] == 16 * 8 * 6 * 6
    weight = next(t for t in sample["tensors"] if t["name"] == "0.weight")
    assert weight["dtype"] == "float32" and weight["lost"] is not None
    assert sum(len(r["loss"]) for r in records if r["type"] == "history") == 5
    assert audit_log(path).findings == ()


def test_tensorboard_is_written_or_refused(tmp_path: Path) -> None:
    run = Run()
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        with pytest.raises(CapabilityError, match="TensorBoard"):
            monitor(run.model, run.optimizer, run.scaler, path=tmp_path / "m.jsonl", tensorboard=True)
        return
    with monitor(run.model, run.optimizer, run.scaler, path=tmp_path / "m.jsonl", tensorboard=True) as watch:
        run(2, watch)
    assert list((tmp_path / "m.tensorboard").iterdir())


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
def test_statistics_against_numpy(layout: str) -> None:
    torch.manual_seed(1)
    x = torch.randn(2, 4, 8, 8)
    x[0, 0, 0, :4] = torch.tensor([0.0, 2.0**-25, 2.0**-20, -50000.0])
    if layout == "channels_last":
        x = x.contiguous(memory_format=torch.channels_last)
    elif layout == "strided":
        x = torch.stack([x, x], -1)[..., 0]
    batch = StatsBatch()
    batch.add("x", "activation", x)
    batch.add("h", "activation", x.half())
    batch.add("n", "activation", torch.tensor([1.0, float("nan"), -3.0]))
    batch.add("i", "activation", torch.tensor([1.0, -float("inf")]))
    batch.add("int", "activation", torch.arange(3))
    batch.add("empty", "activation", torch.empty(0))
    full, half, nan, inf = batch.read()
    assert full.elements == full.sampled == 512
    assert full.abs_max == 50000.0 and full.finite
    assert full.near_overflow == 1 / 512 and full.zero == 1 / 512
    assert full.subnormal == 2 / 512  # 2^-25 and 2^-20
    assert full.lost == 1 / 511  # of the non-zeros
    assert half.dtype == "float16" and half.lost is None and half.zero == 2 / 512
    assert not nan.finite and math.isnan(nan.abs_max)
    assert not inf.finite and inf.abs_max == math.inf


def test_large_tensors_are_sampled_but_their_maximum_is_exact() -> None:
    x = torch.zeros(1_000_003)
    x[777_777] = 40000.0
    batch = StatsBatch()
    batch.add("x", "activation", x)
    (stats,) = batch.read()
    assert stats.abs_max == 40000.0
    assert stats.sampled <= 8192 < stats.elements


# -- loops that are easy to misread ---------------------------------------------------------------------------------


def test_a_gradient_of_an_earlier_micro_batch_is_not_a_dirty_one() -> None:
    # step 2 is skipped; so is step 3, whose first micro-batch makes an inf of its own before the second one runs
    torch.manual_seed(0)
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    with monitor(model, optimizer, scaler, every=1) as watch:
        for step in range(1, 5):
            for _ in range(2):
                with torch.autocast("cpu", dtype=HALF):
                    loss = model(torch.ones(2, 4)).float().mean()
                scaler.scale(loss * (math.inf if step in (2, 3) else 1.0)).backward()
            scaler.step(optimizer)
            scaler.update()
            watch.step(loss)
            optimizer.zero_grad()
    summary = watch.summary()
    assert summary["skipped_steps"] == [2, 3]
    assert [f for f in summary["findings"] if f["rule"] == "R03"] == []


def test_an_optimiser_that_waits_for_its_turn_is_not_a_skip() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    optimizers = [torch.optim.SGD(part.parameters(), lr=0.01) for part in model]
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    with monitor(model, optimizers, scaler, every=2) as watch:
        for step in range(1, 9):
            with torch.autocast("cpu", dtype=HALF):
                loss = model(torch.ones(2, 4)).float().mean()
            scaler.scale(loss * (math.inf if step == 5 else 1.0)).backward()
            scaler.step(optimizers[step % 2])
            scaler.update()
            watch.step(loss)
            model.zero_grad()
    assert watch.summary()["skipped_steps"] == [5]


def test_a_fused_optimiser_that_skips_the_first_step() -> None:
    run = Run(torch.optim.SGD, scale=2.0**40, fused=True)
    with monitor(run.model, run.optimizer, run.scaler, every=3) as watch:
        run(2, watch)
    assert watch.summary()["skipped_steps"] == [1, 2]


def test_a_loss_that_was_queued_comes_before_what_the_next_sample_sees() -> None:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with monitor(model, optimizer, None, every=4) as watch:
        for step in range(1, 6):  # sampled: 1 and 5; step 4 makes the weights NaN
            loss = model(torch.ones(2, 4)).mean() * (math.nan if step == 4 else 1.0)
            loss.backward()
            optimizer.step()
            watch.step(loss)
            optimizer.zero_grad()
    first = watch.summary()["first_non_finite"]
    assert (first["step"], first["kind"]) == (4, "loss")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_ends_the_log_and_not_the_training() -> None:
    run = Run()
    with pytest.warns(RuntimeWarning, match="No space left"):
        watch = monitor(run.model, run.optimizer, run.scaler, path="/dev/full", tensorboard=False)
    run(3, watch)
    watch.close()
    assert watch.summary()["steps"] == 3


@pytest.mark.parametrize("every", [0, -1, 1.5, "50", None])
def test_every_is_a_whole_number(every: Any) -> None:
    run = Run()
    with pytest.raises(ValueError, match="whole number"):
        monitor(run.model, run.optimizer, every=every)


def test_a_killed_run_leaves_whole_lines(tmp_path: Path) -> None:
    log = tmp_path / "m.jsonl"
    code = f"""
import os, signal, torch, deploychain
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
watch = deploychain.monitor(model, optimizer, every=1, path={str(log)!r}, tensorboard=False)
for step in range(20):
    loss = model(torch.ones(2, 4)).mean()
    loss.backward()
    optimizer.step()
    watch.step(loss)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=120)
    assert done.returncode == -9
    records = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert records[0]["type"] == "start"
    assert records[-1]["last_step"] == 20
    assert scale_history(read_log(log)) == ([], [], 20)


@pytest.mark.parametrize("optimizer", [None, [], [None]])
def test_without_an_optimiser_nothing_is_watched_silently(optimizer: object) -> None:
    with pytest.raises(TypeError, match="must be an optimiser"):
        deploychain.monitor(torch.nn.Linear(2, 1), optimizer)

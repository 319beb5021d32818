"""The adaptors, driven in the order in which Lightning, the Hugging Face Trainer and Accelerate call them.

The packages are not needed: their trainers are played by small loops that make the same calls in the same order.
"""

# ruff: noqa: E402  (imports come after importorskip)
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the adaptors watch PyTorch training")
nn = torch.nn

from deploychain.backends.amp_callbacks import LightningMonitor, TrainerMonitor, accelerate_monitor

pytestmark = pytest.mark.chain


class Loop:
    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)

    def loss(self, bad: bool = False) -> Any:
        x = torch.randn(16, 8)
        if bad:
            x[0, 0] = float("inf")
        with torch.autocast("cpu", dtype=torch.float16):
            return nn.functional.cross_entropy(self.model(x), torch.randint(0, 4, (16,)))

    def backward(self, loss: Any) -> None:
        self.scaler.scale(loss).backward()

    def step(self) -> None:
        self.scaler.step(self.optimizer)
        self.scaler.update()


def test_lightning_counts_optimiser_steps_under_accumulation() -> None:
    loop, callback = Loop(), LightningMonitor(every=1)
    trainer = SimpleNamespace(
        optimizers=[loop.optimizer],
        precision_plugin=SimpleNamespace(scaler=loop.scaler),
        accumulate_grad_batches=2,
        num_training_batches=5,
    )
    callback.on_train_start(trainer, loop.model)
    for batch in range(5):
        loss = loop.loss(bad=batch == 1)
        loop.backward(loss)
        if (batch + 1) % 2 == 0 or batch == 4:
            loop.step()
        callback.on_train_batch_end(trainer, loop.model, {"loss": loss}, None, batch)
        if (batch + 1) % 2 == 0:
            loop.optimizer.zero_grad()
    callback.on_train_end(trainer, loop.model)
    assert callback.monitor is not None
    summary = callback.monitor.summary()
    assert summary["steps"] == 3
    assert summary["skipped_steps"] == [1]
    assert summary["loss_dtype"] == "float32"


@pytest.mark.parametrize("new", [True, False])
def test_hugging_face_trainer_old_and_new(new: bool) -> None:
    loop, callback = Loop(), TrainerMonitor(every=1)
    wrapped = SimpleNamespace(optimizer=loop.optimizer, scaler=loop.scaler)  # AcceleratedOptimizer
    callback.on_train_begin(None, None, None, model=loop.model, optimizer=wrapped)
    for step in range(4):
        loop.backward(loop.loss(bad=step == 2))
        loop.step()
        if new:
            callback.on_optimizer_step(None, None, None)
        loop.model.zero_grad()
        callback.on_step_end(None, None, None)
    callback.on_train_end(None, None, None)
    assert callback.monitor is not None
    summary = callback.monitor.summary()
    assert summary["steps"] == 4
    assert summary["skipped_steps"] == [3]
    assert summary["skips"][0]["cause"].startswith("backward" if new else "unknown: the gradients were cleared")


def test_accelerate() -> None:
    loop = Loop()
    accelerator = SimpleNamespace(scaler=loop.scaler)
    with accelerate_monitor(accelerator, loop.model, SimpleNamespace(optimizer=loop.optimizer), every=2) as watch:
        for step in range(6):
            loss = loop.loss(bad=step == 3)
            loop.backward(loss)
            loop.step()
            watch.step(loss)
            loop.optimizer.zero_grad()
    assert watch.summary()["skipped_steps"] == [4]
    assert watch.summary()["scale"] == 2.0**9

"""The monitor in other people's loops: Lightning, Hugging Face Trainer, Accelerate.

None of these packages is needed to import this module: the classes derive from the package's base class where it is
installed and work by duck typing where it is not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deploychain.backends.amp_monitor import Monitor, monitor


def _base(*places: tuple[str, str]) -> type:
    from importlib import import_module

    for module, name in places:
        try:
            return getattr(import_module(module), name)  # type: ignore[no-any-return]
        except (ImportError, AttributeError):
            continue
    return object


_LightningBase: Any = _base(("lightning.pytorch.callbacks", "Callback"), ("pytorch_lightning.callbacks", "Callback"))
_TrainerBase: Any = _base(("transformers.trainer_callback", "TrainerCallback"))


class LightningMonitor(_LightningBase):  # type: ignore[misc]
    """`Trainer(precision="16-mixed", callbacks=[LightningMonitor(every=50, path="monitor.jsonl")])`"""

    def __init__(self, every: int = 50, path: Path | str | None = None) -> None:
        super().__init__()
        self.every, self.path = every, path
        self.monitor: Monitor | None = None
        self._loss: Any = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        plugin = getattr(trainer, "precision_plugin", None) or getattr(trainer.strategy, "precision_plugin", None)
        self.monitor = monitor(
            pl_module, list(trainer.optimizers), getattr(plugin, "scaler", None), every=self.every, path=self.path
        )

    def on_before_zero_grad(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        # Lightning zeroes before the backward of the next batch, so the gradients of the last step are still there.
        return None

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        every = int(getattr(trainer, "accumulate_grad_batches", 1) or 1)
        total = getattr(trainer, "num_training_batches", None)
        last = isinstance(total, int) and batch_idx + 1 == total
        if self.monitor is not None and ((batch_idx + 1) % every == 0 or last):
            self.monitor.step(self._loss)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self.monitor is not None:
            self.monitor.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self.monitor is not None:
            self.monitor.close()


class TrainerMonitor(_TrainerBase):  # type: ignore[misc]
    """`Trainer(..., callbacks=[TrainerMonitor(every=50, path="monitor.jsonl")])` for Hugging Face's Trainer.

    The Trainer does not hand the loss to callbacks: the log holds none. `on_optimizer_step` (since 4.46) comes before
    the gradients are cleared; older versions only have `on_step_end`, where the cause of a skip stays unknown.
    """

    def __init__(self, every: int = 50, path: Path | str | None = None) -> None:
        super().__init__()
        self.every, self.path = every, path
        self.monitor: Monitor | None = None
        self._stepped = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        optimizer = kwargs.get("optimizer")
        if optimizer is not None:
            self.monitor = monitor(kwargs["model"], optimizer, _scaler_of(optimizer), every=self.every, path=self.path)

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._stepped = True
        if self.monitor is not None:
            self.monitor.step()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.monitor is not None and not self._stepped:
            self.monitor.step()
        self._stepped = False

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.monitor is not None:
            self.monitor.close()


def accelerate_monitor(
    accelerator: Any, model: Any, optimizer: Any, every: int = 50, path: Path | str | None = None
) -> Monitor:
    """A monitor for a loop with Accelerate. Call `step(loss)` where `accelerator.sync_gradients` is true, after
    `optimizer.step()` and before `optimizer.zero_grad()`."""
    return monitor(model, optimizer, getattr(accelerator, "scaler", None), every=every, path=path)


def _scaler_of(optimizer: Any) -> Any:
    return getattr(optimizer, "scaler", None)  # AcceleratedOptimizer keeps it

"""The one training loop: AMP training and the fine-tuning of quantised models."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader

from deploychain.backends import torch_data as data
from deploychain.backends.torch_checkpoint import CHECKPOINT_FORMAT, ResumeStore
from deploychain.backends.torch_ddp import Ranks, wrap
from deploychain.backends.torch_device import DTYPES, Mode, cpu_threads, determinism
from deploychain.backends.torch_eval import evaluate
from deploychain.backends.torch_optim import Ema, lr_factor, make_optimizer
from deploychain.backends.torch_plan import EpochLog, EpochTime, FitPlan, TrainLog
from deploychain.backends.torch_watch import LossWatch, non_finite_loss, patience, scale_exhausted
from deploychain.console import NoProgress, Progress
from deploychain.errors import StageError
from deploychain.task import Task

__all__ = ["EpochLog", "FitPlan", "FitResult", "StepWatcher", "TrainLog", "fit"]

_READ_EVERY = 10  # steps between two looks at the loss on a GPU; each look waits for the device


class StepWatcher(Protocol):
    """What the loop tells an observer (the runtime monitor); see `deploychain.backends.torch_observe`."""

    def begin_epoch(self, epoch: int, mode: Mode, model: nn.Module, optimizer: Any, scaler: Any) -> None: ...

    def step(self, loss: torch.Tensor) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class FitResult:
    """``model`` is the trained module itself; ``published`` is its average where EMA is on, else the same module."""

    model: nn.Module
    published: nn.Module
    log: TrainLog
    state: Mapping[str, Any]  # what a checkpoint holds
    resumed_from: int  # finished epochs that were not trained again
    times: tuple[EpochTime, ...] = ()  # of the epochs that were trained here


def fit(
    model: nn.Module,
    task: Task,
    plan: FitPlan,
    device: torch.device,
    *,
    progress: Progress | None = None,
    note: Callable[[str], None] = lambda text: None,
    store: ResumeStore | None = None,
    ranks: Ranks | None = None,
    watcher: StepWatcher | None = None,
    after_step: Callable[[int, int], None] | None = None,
) -> FitResult:
    """Train a model in place.

    Every epoch starts with all random generators seeded from (seed, epoch, rank), so that a training that goes on
    after an interruption draws the same numbers as one that was never interrupted.

    Args:
        model: FP32 parameters (they stay FP32: autocast makes half copies); moved to ``device``.
        task: gives ``train_data``, ``loss``, ``metrics`` and ``test_data``. The loss is taken as a mean over the
            samples of a batch.
        store: keeps the state after every epoch, and is where an interrupted training goes on from.
        watcher: told of every optimizer step, before the gradients are cleared.
        after_step: ``after_step(done, total)`` after every optimizer step, for schedules of the caller's own.

    Raises:
        StageError: the loss is not finite, the loss scale is exhausted, no step could be applied, or the data has
            the wrong form.
    """
    with determinism(plan.deterministic), cpu_threads(plan.threads):
        return _Fit(
            model, task, plan, device, progress or NoProgress(), note, store, ranks or Ranks(), watcher, after_step
        ).run()


class _Fit:
    """State of one call of `fit`."""

    def __init__(
        self,
        model: nn.Module,
        task: Task,
        plan: FitPlan,
        device: torch.device,
        progress: Progress,
        note: Callable[[str], None],
        store: ResumeStore | None,
        ranks: Ranks,
        watcher: StepWatcher | None,
        after_step: Callable[[int, int], None] | None,
    ) -> None:
        self.task, self.plan, self.device, self.ranks = task, plan, device, ranks
        self.progress, self.note, self.store = progress, note, store
        self.watcher, self.after_step = watcher, after_step
        data.seed_everything(plan.seed, 0, ranks.rank)
        layout = torch.channels_last if plan.channels_last else torch.preserve_format
        self.model = model.to(device, memory_format=layout)  # type: ignore[call-overload]
        self.loader = self._loader("train", plan.batch_size, shuffle=True)
        self.batches = len(self.loader)
        self.per_epoch = -(-self.batches // plan.accumulate)
        self.total_steps = self.per_epoch * plan.epochs
        self.optimizer = make_optimizer(
            self.model, plan.optimizer, lr=plan.lr, momentum=plan.momentum, weight_decay=plan.weight_decay
        )
        warmup = min(round(plan.warmup_epochs * self.per_epoch), self.total_steps - 1)
        self.schedule = LambdaLR(self.optimizer, lr_factor(plan.schedule, warmup, self.total_steps))
        fp16 = plan.precision == "fp16-mixed"
        self.scaler = torch.amp.GradScaler(
            device.type, init_scale=plan.init_scale, growth_interval=plan.growth_interval, enabled=fp16
        )
        self.no_scaler = torch.amp.GradScaler(device.type, enabled=False)
        self.ema = Ema(self.model, plan.ema) if plan.ema is not None else None
        self.log = TrainLog()
        self.times: list[EpochTime] = []
        self.watch = LossWatch(device)
        self.cast_outputs = False
        self.finite_seen = False
        self.metrics: dict[str, float] = {}

    def _loader(self, split: data.Split, batch_size: int, shuffle: bool) -> DataLoader[Any]:
        train = split == "train"
        return data.make_loader(
            self.task,
            split,
            batch_size,
            self.plan.seed,
            shuffle,
            workers=self.plan.workers,
            rank=self.ranks.rank if train else 0,
            world=self.ranks.world if train else 1,
            pin_memory=self.device.type == "cuda",
        )

    # -- the course of the training ---------------------------------------------------------------------------

    def run(self) -> FitResult:
        first = self._resume()
        runner = wrap(self.model, self.ranks, self.device)
        if self.plan.compile:
            runner = torch.compile(runner)  # type: ignore[assignment]
        test = self._loader("test", max(self.plan.batch_size, 100), False) if self._evaluates else None
        try:
            for epoch in range(first, self.plan.epochs):
                self._epoch(runner, epoch, test)
                if self.store is not None and self.ranks.writes:
                    self.store.save(epoch + 1, self._state(epoch + 1))
        finally:
            if self.watcher is not None:
                self.watcher.close()
        if not any(e.steps for e in self.log.epochs):
            raise StageError(
                f"no optimizer step was applied: all {self.log.step} had non-finite gradients",
                remedy="train longer, lower init_scale, or use bf16-mixed or fp32",
            )
        self.model.eval()
        published = self.ema.module if self.ema is not None else self.model
        return FitResult(self.model, published, self.log, self._state(self.plan.epochs), first, tuple(self.times))

    @property
    def _evaluates(self) -> bool:
        return self.plan.evaluate and self.ranks.writes

    def _epoch(self, runner: nn.Module, epoch: int, test: DataLoader[Any] | None) -> None:
        mode = self.plan.mode(epoch)
        scaler = self.scaler if mode == "fp16-mixed" else self.no_scaler
        data.seed_everything(self.plan.seed, epoch + 1, self.ranks.rank)
        data.start_epoch(self.loader, self.plan.seed, epoch)
        self.watch.restart()
        if self.watcher is not None:
            self.watcher.begin_epoch(epoch, mode, self.model, self.optimizer, scaler)
        runner.train()
        skipped_before, steps_before = len(self.log.skipped), self.log.step
        samples = 0
        lr = self.optimizer.param_groups[0]["lr"]
        began = time.perf_counter()
        for index, inputs, targets, share, last in self._micro_batches():
            samples += data.batch_length(inputs)
            # DDP averages the gradients once per optimizer step, not once per micro-batch.
            quiet = contextlib.nullcontext() if last or self.ranks.world == 1 else runner.no_sync()  # type: ignore[operator]
            with quiet:
                loss = self._loss(runner, inputs, targets, mode)
                scaler.scale(loss * share).backward()  # type: ignore[no-untyped-call]
            self.watch.add(loss, data.batch_length(inputs))
            if last:
                lr = self.optimizer.param_groups[0]["lr"]
                look = self._look(index + 1 == self.batches)
                if look:
                    self._check_loss(inputs, targets, mode, lr)
                self._step(scaler, loss)
                if look:
                    self._report(epoch, index + 1, samples / (time.perf_counter() - began), scaler)
        seconds = time.perf_counter() - began
        if test is not None:
            self.metrics = evaluate(self.ema.module if self.ema else self.model, self.task, test, self.device)
        skipped = len(self.log.skipped) - skipped_before
        self.log.epochs.append(
            EpochLog(
                epoch=epoch + 1,
                precision=mode,
                loss=self.watch.read()[0],
                lr=lr,
                steps=self.log.step - steps_before - skipped,
                skipped_steps=skipped,
                scale=scaler.get_scale() if scaler.is_enabled() else None,
                metrics=self.metrics,
            )
        )
        rate = samples / seconds
        self.times.append(EpochTime(epoch + 1, round(seconds, 3), round(rate * self.ranks.world, 1)))
        self._report(epoch, self.batches, rate, scaler)

    # -- one step ---------------------------------------------------------------------------------------------

    def _micro_batches(self) -> Iterator[tuple[int, Any, Any, float, bool]]:
        """(index, inputs, targets, share, last of its optimizer step).

        ``share`` is the part of the step's samples that this micro-batch holds: mean losses weighted by it add up to
        the mean over the whole effective batch, also in the last, shorter window.
        """
        sampler = self.loader.sampler
        assert isinstance(sampler, data.ShardSampler)
        size, window = self.plan.batch_size, self.plan.batch_size * self.plan.accumulate
        for index, batch in enumerate(self.loader):
            inputs, targets = data.split_batch(batch)
            inputs = data.move(inputs, self.device, channels_last=self.plan.channels_last)
            targets = data.move(targets, self.device)
            start = index // self.plan.accumulate * window
            whole = min(window, len(sampler) - start)
            here = min(size, len(sampler) - index * size)
            last = (index + 1) % self.plan.accumulate == 0 or index + 1 == self.batches
            yield index, inputs, targets, here / whole, last

    def _loss(self, runner: nn.Module, inputs: Any, targets: Any, mode: Mode) -> torch.Tensor:
        """Forward pass and loss under autocast; the loss is FP32 whatever the task does."""
        dtype = DTYPES.get(mode)
        with torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None):
            outputs = data.call_model(runner, inputs)
            loss = self._task_loss(_to_fp32(outputs) if self.cast_outputs else outputs, targets)
            if loss.dtype in (torch.float16, torch.bfloat16) and not self.cast_outputs:
                # The sum over classes and samples ran in half precision: redo it from FP32 outputs.
                self.cast_outputs = True
                text = f"loss() returned {str(loss.dtype)[6:]}: from here on it gets the outputs in FP32"
                self.log.notes.append(text)
                self._say(text)
                loss = self._task_loss(_to_fp32(outputs), targets)
        return loss.float()

    def _task_loss(self, outputs: Any, targets: Any) -> torch.Tensor:
        loss = self.task.loss(outputs, targets)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            found = f"shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
            raise StageError(
                f"loss() returned {found}, expected one number as a tensor",
                where=type(self.task).__name__,
                remedy="return the mean over the samples: loss.mean()",
            )
        if torch.is_grad_enabled() and not loss.requires_grad:
            raise StageError(
                "loss() returned a tensor without a gradient",
                where=type(self.task).__name__,
                remedy="compute it from the outputs, without detach(), item() or torch.no_grad()",
            )
        return loss.reshape(())

    def _step(self, scaler: torch.amp.GradScaler, loss: torch.Tensor) -> None:
        self.log.step += 1
        if self.plan.clip_norm is not None:
            scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.model.parameters(), self.plan.clip_norm)
        scaler.step(self.optimizer)
        scaler.update()
        skipped = scaler.is_enabled() and self._follow_scale(scaler.get_scale())
        if self.watcher is not None:
            self.watcher.step(loss)
        self.optimizer.zero_grad(set_to_none=True)
        if skipped:
            self.log.skipped.append(self.log.step)
        else:
            self.schedule.step()
            if self.ema is not None:
                self.ema.update(self.model)
        if self.after_step is not None:
            self.after_step(self.log.step, self.total_steps)

    def _follow_scale(self, scale: float) -> bool:
        """Keep the loss scale's history; True when it fell, the one sign that GradScaler gives of a skipped step."""
        history = self.log.scale_history
        before = history[-1][1] if history else self.plan.init_scale
        if scale != before or not history:
            history.append((self.log.step, scale))
        if scale < 1.0:
            raise scale_exhausted(scale, self.log.step, len(self.log.skipped) + 1)
        return scale < before

    # -- watching ---------------------------------------------------------------------------------------------

    def _look(self, end: bool) -> bool:
        return self.device.type == "cpu" or end or self.log.step % _READ_EVERY == 0

    def _check_loss(self, inputs: Any, targets: Any, mode: Mode, lr: float) -> None:
        """Before the step is taken: a non-finite loss would spoil the weights that tell the cause."""
        _, bad = self.watch.read()
        if bad >= patience(mode):
            raise non_finite_loss(
                self.model,
                inputs,
                mode=mode,
                step=self.log.step + 1,
                first=not self.finite_seen,
                lr=lr,
                loss_of=lambda outputs: self._task_loss(outputs, targets),
            )
        self.finite_seen = self.finite_seen or bad == 0

    def _report(self, epoch: int, done: int, rate: float, scaler: torch.amp.GradScaler) -> None:
        fields: dict[str, object] = {"loss": self.watch.read()[0]}
        if self.metrics:
            name, value = next(iter(self.metrics.items()))
            fields[name] = value
        fields["images/s"] = round(rate * self.ranks.world)
        if scaler.is_enabled():
            fields["scale"] = scaler.get_scale()
        self.progress.update(epoch * self.batches + done, self.plan.epochs * self.batches, **fields)

    def _say(self, text: str) -> None:
        if self.ranks.writes:
            self.note(text)

    # -- state ------------------------------------------------------------------------------------------------

    def _state(self, epoch: int) -> dict[str, Any]:
        """Everything that the next epoch depends on: tensors, numbers, text and containers of them."""
        return {
            "format": CHECKPOINT_FORMAT,
            "plan": json.dumps(asdict(self.plan), sort_keys=True),
            "world": self.ranks.world,
            "epoch": epoch,
            "seed": self.plan.seed,  # with the epoch: the state of every random generator
            "model": self.model.state_dict(),
            "ema": self.ema.module.state_dict() if self.ema is not None else None,
            "ema_updates": self.ema.updates if self.ema is not None else 0,
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "scaler": self.scaler.state_dict(),
            "cast_outputs": self.cast_outputs,
            "log": self.log.dump(),
        }

    def _resume(self) -> int:
        """Finished epochs of an interrupted training with the same plan; its state is loaded."""
        state = self.store.load() if self.store is not None else None
        if state is None:
            return 0
        if state["plan"] != json.dumps(asdict(self.plan), sort_keys=True) or state["world"] != self.ranks.world:
            self._say("an interrupted training with other settings was found; training starts anew")
            return 0
        self.model.load_state_dict(state["model"])
        if self.ema is not None:
            self.ema.module.load_state_dict(state["ema"])
            self.ema.updates = int(state["ema_updates"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        if self.scaler.is_enabled():
            self.scaler.load_state_dict(state["scaler"])
        self.cast_outputs = bool(state["cast_outputs"])
        self.log = TrainLog.restore(state["log"])
        self.metrics = dict(self.log.epochs[-1].metrics) if self.log.epochs else {}
        self.finite_seen = True
        if self.after_step is not None:
            self.after_step(self.log.step, self.total_steps)  # the caller's own schedule is not in the state
        self._say(f"resumed after epoch {state['epoch']} of {self.plan.epochs}")
        return int(state["epoch"])


def _to_fp32(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.float() if value.is_floating_point() else value
    if isinstance(value, Mapping):
        return {k: _to_fp32(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        cast = [_to_fp32(v) for v in value]
        return type(value)(*cast) if hasattr(value, "_fields") else type(value)(cast)
    return value

"""The runtime monitor: what mixed precision does to a model while it trains.

    with deploychain.monitor(model, optimizer, scaler, every=50, path=Path("monitor.jsonl")) as m:
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.float16):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            m.step(loss)               # once per optimiser step, before the gradients are cleared
            optimizer.zero_grad()

On one step in `every` the monitor hooks the modules and reads what they saw with one copy a dtype: activations and
gradients take turns (both on the first step and after a skipped one), so each is seen every second time. On the
other steps it queues two scalars (loss, scale) on the device and waits for nothing, so the scale history is complete
and every skipped step is counted. It returns no value from a hook and touches no tensor of the model: the numbers
of the training are the same bits with and without it.

A skipped step is known at once where the optimiser is not fused (its `step` was not called); the gradients are
then searched for the culprit. A fused optimiser hides a skip from the host, so there it is found at the next read,
with the cause unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import nn

from deploychain.audit.scale_health import WARM_UP, judge_scale
from deploychain.backends.amp_sampler import Sampler, as_json, clean_name
from deploychain.backends.amp_sinks import Sinks
from deploychain.backends.amp_stats import NEAR_OVERFLOW, TensorStats, fetch

MONITOR_SCHEMA = "deploychain.monitor/1"
_FOLLOW_UP = 3  # steps that are sampled after a skip, to see whether the fault stays


def monitor(
    model: nn.Module,
    optimizer: Any,
    scaler: Any = None,
    every: int = 50,
    path: Path | str | None = None,
    *,
    tensorboard: bool | None = None,
) -> Monitor:
    """Watch a training loop.

    Args:
        model: the module that is trained; DDP and compiled wrappers are looked through.
        optimizer: one optimiser or several.
        scaler: the GradScaler; None for FP32 and BF16 training.
        every: sample the modules on one step in `every`.
        path: JSON lines file. Under torch.distributed each rank writes its own (`name.rank1.jsonl`).
        tensorboard: write scalars beside `path`; None means if it is installed.
    """
    return Monitor(model, optimizer, scaler, every=every, path=path, tensorboard=tensorboard)


class Monitor:
    """See `monitor`. `step` once per optimiser step; `close` (or the `with` statement) at the end."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: Any,
        scaler: Any = None,
        *,
        every: int = 50,
        path: Path | str | None = None,
        tensorboard: bool | None = None,
    ) -> None:
        if not isinstance(every, int) or every < 1:
            raise ValueError(f"every must be a whole number, 1 or more, and is {every!r}")
        given = [_unwrap(o) for o in (optimizer if isinstance(optimizer, (list, tuple)) else [optimizer])]
        if not given or not all(callable(getattr(o, "step", None)) for o in given):
            raise TypeError(f"optimizer must be an optimiser or a list of them, and is {optimizer!r}")
        self.every = every
        self.rank = _rank()
        self._scaler = scaler if scaler is not None and scaler.is_enabled() else None
        self._model = model
        self._sampler = Sampler(model, self._before_forward)
        self._optimizers = given
        self._device = next((p.device for p in model.parameters()), torch.device("cpu"))
        self._step = 0
        self._queued: list[tuple[Any, torch.Tensor | None]] = []  # loss, scale of each step since the last read
        self._scales: list[tuple[int, float]] = []
        self._last_scale: float | None = None
        self._first_scale = None if self._scaler is None else float(self._scaler.get_scale())
        self._new_step = True  # no forward pass since the last optimiser step
        self._skips: dict[int, dict[str, Any]] = {}
        self._follow = 0
        self._first_bad: dict[str, Any] | None = None
        self._findings: dict[tuple[str, str], dict[str, Any]] = {}
        self._loss_dtype: str | None = None
        self._last_loss: float | None = None
        self._samples = 0
        self._closed = False
        self._opt_calls = [0] * len(self._optimizers)
        self._opt_handles = [
            o.register_step_post_hook(self._counter(i))
            for i, o in enumerate(self._optimizers)
            if hasattr(o, "register_step_post_hook")
        ]
        self._sinks = Sinks(path, self.rank, tensorboard)
        self._sinks.write(
            {
                "type": "start",
                "schema": MONITOR_SCHEMA,
                "rank": self.rank,
                "every": every,
                "torch": torch.__version__,
                "device": str(self._device),
                "scaler": type(scaler).__name__ if scaler is not None else None,
                "scaler_enabled": self._scaler is not None,
                "modules": len(self._sampler.modules),
                "near_overflow_above": NEAR_OVERFLOW,
            }
        )
        self._check_parameters()
        self._arm()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- once per optimiser step ---------------------------------------------------------------------------------

    def step(self, loss: Any = None) -> None:
        """Tell the monitor that one optimiser step is over. Call after `scaler.update()`, before `zero_grad()`."""
        if self._closed:
            return
        self._step += 1
        self._new_step = True
        self._queue(loss)
        sampled = self._sampler.armed
        if sampled:
            self._collect()
        if self._skipped_on_host():
            self._explain_skip(loss)
        self._opt_calls = [0] * len(self._optimizers)
        if sampled or len(self._queued) >= self.every + _FOLLOW_UP:
            self._read_queue()
        self._sampler.disarm()
        if self._follow > 0 or self._step % self.every == 0:
            self._follow = max(0, self._follow - 1)
            self._arm()

    def close(self) -> None:
        """Remove every hook, read what is queued, write the summary. Calling it again does nothing."""
        if self._closed:
            return
        self._closed = True
        self._sampler.disarm()
        for handle in self._opt_handles:
            handle.remove()
        self._read_queue()
        self._sinks.write({"type": "end", **self._summary()})
        self._sinks.close()

    def summary(self) -> dict[str, Any]:
        """What was seen so far, as JSON types. Reads what is queued: one synchronisation."""
        if not self._closed:
            self._read_queue()
        return self._summary()

    # -- what is queued without waiting -------------------------------------------------------------------------

    def _queue(self, loss: Any) -> None:
        # Copies: the scale is changed in place, and a captured graph writes each loss to the same place.
        scale = getattr(self._scaler, "_scale", None)
        if isinstance(loss, torch.Tensor):
            self._note_loss_dtype(loss)
            loss = loss.detach().clone()
        self._queued.append((loss, scale.detach().clone() if isinstance(scale, torch.Tensor) else None))

    def _note_loss_dtype(self, loss: torch.Tensor) -> None:
        name = str(loss.dtype).removeprefix("torch.")
        if name != self._loss_dtype:
            self._loss_dtype = name
            if loss.dtype in (torch.float16, torch.bfloat16):
                self._find(
                    "R01", "error", "loss", f"the loss is {name}: compute it from `logits.float()`, or inside autocast"
                )

    def _read_queue(self) -> None:
        """Fetch the queued losses and scales: the complete history since the last read."""
        if not self._queued:
            return
        losses = fetch([loss for loss, _ in self._queued], self._device)
        scales = fetch([scale for _, scale in self._queued], self._device)
        first = self._step - len(self._queued) + 1
        changes: list[list[float]] = []
        for offset, (loss, scale) in enumerate(zip(losses, scales, strict=True)):
            step = first + offset
            if loss == loss and abs(loss) != math.inf:
                self._last_loss = loss
            if not math.isnan(scale):
                self._scale_at(step, scale, changes)
        non_finite = self._non_finite_losses(first, losses)
        record: dict[str, Any] = {"type": "history", "first_step": first, "last_step": self._step, "scale": changes}
        record["loss"] = [v if math.isfinite(v) else None for v in losses]
        record["non_finite_losses"] = non_finite
        self._sinks.write(record)
        if self._last_scale is not None:
            self._sinks.scalar("amp/scale", self._last_scale, self._step)
        self._queued = []

    def _scale_at(self, step: int, scale: float, changes: list[list[float]]) -> None:
        before = self._first_scale if self._last_scale is None else self._last_scale
        if before is not None and scale < before and step not in self._skips:
            # Only a fused optimiser comes here: the host never learnt that the step was skipped.
            self._skip(step, "unknown: a fused optimiser skipped inside its kernel", None, [])
        if scale != self._last_scale:
            changes.append([step, scale])
            self._scales.append((step, scale))
        self._last_scale = scale

    def _non_finite_losses(self, first: int, losses: Sequence[float]) -> list[int]:
        # NaN also means "no loss was given"; the host knows which.
        if self._loss_dtype is None:
            return []
        bad = [first + i for i, v in enumerate(losses) if not math.isfinite(v)]
        if bad:
            self._bad(bad[0], "loss", "loss", "read later: the module was not sampled on that step")
        return bad

    # -- skipped steps ------------------------------------------------------------------------------------------

    def _counter(self, index: int) -> Any:
        def count(_optimizer: Any, _args: Any, _kwargs: Any) -> None:
            self._opt_calls[index] += 1

        return count

    def _skipped_on_host(self) -> bool:
        """True when the scaler withheld a step from an optimiser that it calls only for finite gradients."""
        if self._scaler is None or len(self._opt_handles) != len(self._optimizers):
            return False
        withheld = any(
            calls == 0 and not _is_fused(opt) for calls, opt in zip(self._opt_calls, self._optimizers, strict=True)
        )
        return withheld and self._scale_fell()

    def _scale_fell(self) -> bool:
        """An optimiser that was not stepped may just not have had its turn: only a skip lowers the scale.

        This waits for the device, as the scaler did when it held the step back.
        """
        now = self._queued[-1][1]
        before = self._queued[-2][1] if len(self._queued) > 1 else self._last_scale
        before = self._first_scale if before is None else before
        return now is None or before is None or bool(now < before)

    def _explain_skip(self, loss: Any) -> None:
        """Find the cause. Waiting is allowed here: the scaler has just waited for the same fact."""
        self._follow = _FOLLOW_UP
        bad, seen = self._non_finite_gradients()
        loss_bad = isinstance(loss, torch.Tensor) and not bool(torch.isfinite(loss.detach()).all())
        nearest = max(bad, key=self._sampler.place) if bad else None
        if loss_bad:
            cause = "forward: the loss on this rank is not finite"
            self._bad(self._step, "loss", "loss", cause)
        elif bad:
            cause = f"backward: {len(bad)} of {seen} gradients are not finite, nearest to the loss {nearest}"
            if self._step <= WARM_UP:
                cause += " (the scale is still finding its level: harmless in the first steps)"
            elif self.rank is not None:
                cause += " (the loss here is finite: another rank may have sent them)"
            self._bad(self._step, "gradient", nearest or "", cause)
        elif seen == 0:
            cause = "unknown: the gradients were cleared before Monitor.step; call it before zero_grad()"
        else:
            cause = "unknown: the gradients are finite now, so they were changed after the check"
        first = self._first_bad
        if first is not None and first["step"] == self._step and first["kind"] != "loss":
            nearest = first["where"]  # the sampled step saw it happen
        self._skip(self._step, cause, nearest, bad)

    def _skip(self, step: int, cause: str, where: str | None, bad: Sequence[str]) -> None:
        record = {"type": "skip", "step": step, "cause": cause, "where": where, "parameters": list(bad)[:20]}
        self._skips[step] = record
        self._sinks.write({**record, "rank": self.rank})

    def _non_finite_gradients(self) -> tuple[list[str], int]:
        named = [(n, p.grad) for n, p in self._model.named_parameters() if p.grad is not None]
        if not named:
            return [], 0
        flags = torch.stack(
            [torch.isfinite(g._values() if g.is_sparse else g).all().to(self._device) for _, g in named]
        ).tolist()
        return [clean_name(name) for (name, _), fine in zip(named, flags, strict=True) if not fine], len(named)

    # -- the sampled step ---------------------------------------------------------------------------------------

    def _arm(self) -> None:
        # With every=1, after a skip, and on the first step everything is read at once; else the two sides take turns.
        self._sampler.arm(everything=self.every == 1 or self._follow > 0 or self._step == 0)

    def _before_forward(self) -> None:
        device = self._device.type
        if self._scaler is not None and not torch.is_autocast_enabled(device):
            self._find(
                "R27", "warning", "forward",
                f"a GradScaler is enabled, but autocast is off for {device} in the forward pass of this thread",
            )  # fmt: skip
        first, self._new_step = self._new_step, False  # later micro-batches find gradients of their own
        if first and self._skips and self._step in self._skips:
            bad, _ = self._non_finite_gradients()
            if bad:
                self._find(
                    "R03", "error", bad[0],
                    f"step {self._step} was skipped and its non-finite gradients are still there when step "
                    f"{self._step + 1} begins: call optimizer.zero_grad() after every scaler.step()",
                )  # fmt: skip

    def _collect(self) -> None:
        stats = self._sampler.read()
        self._samples += 1
        record: dict[str, Any] = {"type": "sample", "step": self._step, "rank": self.rank}
        record["loss_dtype"] = self._loss_dtype
        record["tensors"] = [as_json(s) for s in stats]
        self._sinks.write(record)
        for s in stats:
            if not s.finite:
                self._bad(self._step, s.kind, s.name, f"seen on the sampled step, {s.dtype}")
            elif s.kind == "activation" and s.dtype == "float16" and s.abs_max > NEAR_OVERFLOW:
                self._find("R22", "warning", s.name, f"activation of {s.abs_max:.4g} in fp16, whose maximum is 65504")
        self._scalars(stats)

    def _scalars(self, stats: Iterable[TensorStats]) -> None:
        for kind in ("activation", "activation-gradient", "gradient"):
            of_kind = [s for s in stats if s.kind == kind and s.finite]
            if of_kind:
                self._sinks.scalar(f"amp/{kind}/abs_max", max(s.abs_max for s in of_kind), self._step)
                self._sinks.scalar(f"amp/{kind}/near_overflow", max(s.near_overflow for s in of_kind), self._step)
                self._sinks.scalar(f"amp/{kind}/zero", sum(s.zero for s in of_kind) / len(of_kind), self._step)
        self._sinks.scalar("amp/skipped_steps", len(self._skips), self._step)

    # -- findings -----------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        half = [n for n, p in self._model.named_parameters() if p.requires_grad and p.dtype == torch.float16]
        if half and self._scaler is not None:
            self._find(
                "R08", "error", clean_name(half[0]),
                f"{len(half)} trainable parameters are float16 under a GradScaler: unscale_ will raise "
                "\"Attempting to unscale FP16 gradients\"; keep FP32 parameters and use autocast",
            )  # fmt: skip

    def _bad(self, step: int, kind: str, where: str, how: str) -> None:
        # A queued loss may turn out, at the next read, to come before what a sampled step saw.
        if self._first_bad is None or step < self._first_bad["step"]:
            self._first_bad = {"step": step, "kind": kind, "where": where, "how": how, "rank": self.rank}
            self._sinks.write({"type": "first-non-finite", **self._first_bad})

    def _find(self, rule: str, severity: str, where: str, message: str) -> None:
        if (rule, where) in self._findings or len(self._findings) >= 200:
            return
        finding = {"rule": rule, "severity": severity, "step": self._step, "where": where, "message": message}
        self._findings[rule, where] = finding
        self._sinks.write({"type": "finding", **finding})

    def _summary(self) -> dict[str, Any]:
        health = [
            {"rule": s.rule, "severity": s.severity, "step": s.step, "where": "loss scale", "message": s.message}
            for s in judge_scale(self._scales, self._skips, self._step)
        ]
        return {
            "schema": MONITOR_SCHEMA,
            "rank": self.rank,
            "steps": self._step,
            "sampled_steps": self._samples,
            "skipped_steps": sorted(self._skips),
            "skips": [self._skips[s] for s in sorted(self._skips)][:100],
            "scale": self._last_scale,
            "scale_history": [list(change) for change in self._scales],
            "loss": self._last_loss,
            "loss_dtype": self._loss_dtype,
            "first_non_finite": self._first_bad,
            "findings": [*self._findings.values(), *health],
            "path": str(self._sinks.path) if self._sinks.path else None,
        }


def _rank() -> int | None:
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    return None


def _unwrap(optimizer: Any) -> Any:
    # Accelerate and Lightning wrap the optimiser that the scaler really steps.
    inner = getattr(optimizer, "optimizer", None)
    return inner if isinstance(inner, torch.optim.Optimizer) else optimizer


def _is_fused(optimizer: Any) -> bool:
    return bool(getattr(optimizer, "_step_supports_amp_scaling", False))

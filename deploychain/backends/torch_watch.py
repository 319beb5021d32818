"""The losses of a training, watched on the device, and an explanation when they are no longer finite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn

from deploychain.backends.torch_data import call_model
from deploychain.errors import StageError

# Under FP16 a single overflow in the forward pass costs one skipped step; a run of them is a failure.
_PATIENCE = {"fp16-mixed": 10, "bf16-mixed": 1, "fp32": 1}


class LossWatch:
    """Sums and checks losses without waiting for the device; `read` waits once."""

    def __init__(self, device: torch.device) -> None:
        self._sum = torch.zeros((), dtype=torch.float64, device=device)
        self._samples = 0
        self._streak = torch.zeros((), dtype=torch.int64, device=device)
        self._worst = torch.zeros((), dtype=torch.int64, device=device)

    def add(self, loss: torch.Tensor, samples: int) -> None:
        """One micro-batch: its mean loss over ``samples`` samples."""
        value = loss.detach()
        finite = torch.isfinite(value)
        self._sum += torch.where(finite, value, 0.0).double() * samples
        self._samples += samples
        self._streak = torch.where(finite, 0, self._streak + 1)
        self._worst = torch.maximum(self._worst, self._streak)

    def read(self) -> tuple[float, int]:
        """(mean loss over the samples since the last `restart`, longest run of non-finite losses)."""
        return float(self._sum) / max(self._samples, 1), int(self._worst)

    def restart(self) -> None:
        """Begin a new mean; a run of non-finite losses goes on."""
        self._sum.zero_()
        self._samples = 0
        self._worst = self._streak.clone()


def patience(mode: str) -> int:
    """How many non-finite losses in a row end the training."""
    return _PATIENCE[mode]


def non_finite_loss(
    model: nn.Module, inputs: Any, *, mode: str, step: int, first: bool, lr: float, loss_of: Any
) -> StageError:
    """Say what made the loss non-finite, by looking at the data, the weights and one more forward pass.

    Args:
        inputs: the batch, on the model's device.
        step: the optimizer step at which it was seen, from 1.
        first: no finite loss came before it.
        loss_of: ``loss_of(outputs)`` -> loss tensor of this batch.
    """
    when = f"the loss is NaN or infinite at step {step}" + (", from the first step on" if first else "")
    if _bad_tensors(inputs):
        return StageError(
            f"{when}: the data holds NaN or infinite values",
            remedy="check the dataset: missing values, a division by a zero standard deviation",
        )
    weights = [n for n, p in model.named_parameters() if not bool(torch.isfinite(p).all())]
    if weights:
        remedy = (
            "the model is made with NaN weights: check its initialisation"
            if step == 1
            else f"lower lr ({lr:g}), add clip_norm: 1.0, or a longer warm-up"
        )
        return StageError(f"{when}: the weights themselves are no longer finite ({_some(weights)})", remedy=remedy)
    module, loss_bad = _first_bad_module(model, inputs, loss_of)
    if mode != "fp32" and not module and not loss_bad:
        return StageError(
            f"{when}, but the same batch in FP32 gives a finite loss: {mode} overflows in the forward pass",
            remedy="use bf16-mixed or fp32, or keep the offending part in FP32 with torch.autocast(enabled=False)",
        )
    if module:
        return StageError(
            f"{when}: module {module} gives non-finite values from finite ones, in FP32 too",
            remedy="look for a division by zero, log or sqrt of a non-positive number, or exp of a large one",
        )
    if loss_bad:
        return StageError(
            f"{when}: the model's outputs are finite, the task's loss of them is not",
            remedy="look at loss(): a log of zero, an empty mean, a target outside the classes",
        )
    return StageError(f"{when}; the same batch alone gives a finite loss", remedy="set deterministic: true and retry")


def scale_exhausted(scale: float, step: int, skipped: int) -> StageError:
    """The loss scale fell below 1: gradients overflow however small they are made."""
    return StageError(
        f"the loss scale fell to {scale:g} at step {step}, after {skipped} skipped steps: no gradient is finite",
        remedy="use bf16-mixed or fp32, set clip_norm, lower lr; a skipped step now and then is normal",
    )


def _first_bad_module(model: nn.Module, inputs: Any, loss_of: Any) -> tuple[str, bool]:
    """One FP32 forward pass: the first module that turns finite inputs into non-finite outputs, and the loss."""
    found: list[str] = []
    names = {id(m): n for n, m in model.named_modules()}

    def look(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if not found and _bad_tensors(output) and not _bad_tensors(args):
            found.append(names.get(id(module)) or type(module).__name__)

    handles = [m.register_forward_hook(look) for m in model.modules()]
    state = {k: v.clone() for k, v in model.state_dict().items()}  # BatchNorm counts this pass too
    try:
        with torch.no_grad(), torch.autocast(next(iter(model.parameters())).device.type, enabled=False):
            outputs = call_model(model, inputs)
            return (found[0] if found else ""), not bool(torch.isfinite(loss_of(outputs)).all())
    finally:
        for handle in handles:
            handle.remove()
        model.load_state_dict(state)


def _bad_tensors(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.is_floating_point() and not bool(torch.isfinite(value).all())
    if isinstance(value, Mapping):
        return any(_bad_tensors(v) for v in value.values())
    if isinstance(value, (tuple, list)):
        return any(_bad_tensors(v) for v in value)
    return False


def _some(names: Iterable[str], most: int = 3) -> str:
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more

"""The hooks of a sampled step: which modules are watched, and what they saw.

Between sampled steps there are no hooks. No hook returns a value or touches a tensor of the model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn

from deploychain.backends.amp_stats import StatsBatch, TensorStats

# Their output repeats the range of their input.
_PASS_THROUGH = (nn.Identity, nn.Flatten, nn.Dropout, nn.Dropout2d, nn.ReLU, nn.ReLU6, nn.MaxPool2d)


class Sampler:
    """Hooks the modules and parameters of a model for one step at a time.

    Args:
        model: the module that is trained; DDP and compiled wrappers are looked through.
        before: called before each forward pass of the model on a sampled step.
    """

    def __init__(self, model: nn.Module, before: Callable[[], None]) -> None:
        self._model = model
        self._before = before
        self.modules = _leaf_modules(model)
        self._order: dict[str, int] = {}  # module -> place in the last sampled forward pass
        self._handles: list[Any] = []
        self._batch: StatsBatch | None = None
        self._turn = False
        self._activations = self._gradients = True

    @property
    def armed(self) -> bool:
        """This step is sampled."""
        return self._batch is not None

    def arm(self, everything: bool) -> None:
        """Sample the coming step. Activations and gradients take turns, unless `everything` is asked for."""
        self._batch = StatsBatch()
        self._order = {}
        self._turn = not self._turn
        self._activations, self._gradients = everything or self._turn, everything or not self._turn
        self._handles = [self._model.register_forward_pre_hook(self._before_forward)]
        for name, module in self.modules:
            self._handles.append(module.register_forward_hook(self._forward_hook(name)))
        for name, parameter in self._model.named_parameters():
            if parameter.requires_grad and self._gradients:
                # Fires with this rank's own gradient, before DDP averages it.
                self._handles.append(_on_gradient(parameter, self._gradient_hook(clean_name(name), "gradient")))

    def disarm(self) -> None:
        """Remove every hook."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._batch = None

    def read(self) -> list[TensorStats]:
        """What the hooks saw, one entry per (name, kind): one synchronisation per device and dtype."""
        return _merge(self._batch.read()) if self._batch is not None else []

    def place(self, parameter: str) -> tuple[int, str]:
        """A key that grows towards the loss, in the order of the last sampled forward pass."""
        return self._order.get(parameter.rpartition(".")[0], -1), parameter

    def _before_forward(self, _module: nn.Module, _inputs: Any) -> None:
        if torch.is_grad_enabled():
            self._before()

    def _forward_hook(self, name: str) -> Any:
        def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
            if self._batch is None or not torch.is_grad_enabled():
                return
            self._order[name] = len(self._order)
            for tensor in _tensors(output):
                if self._activations:
                    self._batch.add(name, "activation", tensor)
                if self._gradients and tensor.requires_grad and tensor.grad_fn is not None:
                    self._handles.append(_on_gradient(tensor, self._gradient_hook(name, "activation-gradient")))
                break  # further outputs (attention weights, states) have the same arithmetic

        return hook

    def _gradient_hook(self, name: str, kind: str) -> Any:
        def hook(gradient: torch.Tensor) -> None:
            if self._batch is not None:
                self._batch.add(name, kind, gradient)

        return hook


def _on_gradient(tensor: torch.Tensor, hook: Any) -> Any:
    return tensor.register_hook(hook)  # type: ignore[no-untyped-call]


def clean_name(name: str) -> str:
    """The name of a module or parameter without what DDP and torch.compile put in front."""
    return name.replace("_orig_mod.", "").removeprefix("module.")


def _leaf_modules(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Modules to hook: those without children, less the ones that only pass values on.

    A compiled model gets none, as a hook would make it compile again; its gradients are still watched.
    """
    if hasattr(model, "_orig_mod") or ("torch._dynamo" in sys.modules and _is_compiled(model)):
        return []
    return [
        (clean_name(name) or type(module).__name__, module)
        for name, module in model.named_modules()
        if next(module.children(), None) is None and not isinstance(module, _PASS_THROUGH)
    ]


def _is_compiled(model: nn.Module) -> bool:
    return any(hasattr(m, "_orig_mod") or getattr(m, "_compiled_call_impl", None) is not None for m in model.modules())


def _tensors(output: Any) -> Iterable[torch.Tensor]:
    if isinstance(output, torch.Tensor):
        yield output
    elif isinstance(output, dict):
        for value in output.values():
            yield from _tensors(value)
    elif isinstance(output, (list, tuple)):
        for value in output:
            yield from _tensors(value)


def _merge(stats: Sequence[TensorStats]) -> list[TensorStats]:
    """One entry per (name, kind): the worst of the micro-batches of an accumulated step or of a shared module."""
    best: dict[tuple[str, str], TensorStats] = {}
    for s in stats:
        key = (s.name, s.kind)
        old = best.get(key)
        if old is None or (old.finite and (not s.finite or s.abs_max > old.abs_max)):
            best[key] = s
    return list(best.values())


def as_json(s: TensorStats) -> dict[str, Any]:
    """The form of a tensor in the log."""
    return {
        "name": s.name,
        "kind": s.kind,
        "dtype": s.dtype,
        "abs_max": s.abs_max if s.finite else None,
        "finite": s.finite,
        "near_overflow": s.near_overflow,
        "zero": s.zero,
        "subnormal": s.subnormal,
        "lost": s.lost,
        "elements": s.elements,
        "sampled": s.sampled,
    }

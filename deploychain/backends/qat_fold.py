"""Folding BatchNorm into the layer before it, so that the INT8 layer carries the weights that the engine will use.

Pairs are found by running the model: a BatchNorm is folded when its input is, unchanged, the output of one
convolution or linear layer and both run once. Whether something else reads that output in between is then decided by
the outputs of the whole model, which must not change.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights

from deploychain.backends.qat_quantizer import LAYERS, TRANSPOSED

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
TOLERANCE = 1e-4  # relative change of an output that FP32 rounding can explain

Run = Callable[[nn.Module], Sequence[Tensor]]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Folding:
    """The pairs (layer, norm) that were folded, and for each other BatchNorm why not."""

    pairs: tuple[Pair, ...]
    kept: dict[str, str]


def fold_batchnorms(model: nn.Module, run: Run) -> Folding:
    """Fold every BatchNorm that can be, in place.

    Args:
        model: in eval mode.
        run: runs the model on an example and returns its output tensors.
    """
    with torch.no_grad():
        pairs, kept = _candidates(model, run)
        reference = [t.clone() for t in run(model)]

        def harmless(tried: Sequence[Pair]) -> bool:
            trial = copy.deepcopy(model)
            for pair in tried:
                fold(trial, pair)
            return _same(run(trial), reference)

        if not harmless(pairs):
            for pair in [p for p in pairs if not harmless([p])]:
                pairs.remove(pair)
                kept[pair[1]] = f"the output of {pair[0]} is read by something else too"
        for pair in pairs:
            fold(model, pair)
    return Folding(tuple(pairs), kept)


def fold(model: nn.Module, pair: Pair) -> None:
    """Fold one pair: new weight and bias in the layer, an Identity in place of the norm."""
    layer, norm = model.get_submodule(pair[0]), cast(nn.BatchNorm2d, model.get_submodule(pair[1]))
    weight, bias = cast(nn.Parameter, layer.weight), cast("nn.Parameter | None", layer.bias)
    assert norm.running_mean is not None and norm.running_var is not None
    statistics = (norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias)
    with torch.no_grad():
        # Without affine parameters the functions take None, whatever their annotations say.
        if isinstance(layer, nn.Linear):
            fused = fuse_linear_bn_weights(weight, bias, *statistics)
        else:
            fused = fuse_conv_bn_weights(weight, bias, *statistics, transpose=isinstance(layer, TRANSPOSED))
        weight.copy_(fused[0])
    if bias is None:
        layer.register_parameter("bias", nn.Parameter(fused[1].detach().clone()))
    else:
        with torch.no_grad():
            bias.copy_(fused[1])
    _replace(model, pair[1], nn.Identity())


def _replace(model: nn.Module, name: str, new: nn.Module) -> None:
    parent, _, attribute = name.rpartition(".")
    setattr(model.get_submodule(parent), attribute, new)


def _candidates(model: nn.Module, run: Run) -> tuple[list[Pair], dict[str, str]]:
    made: dict[tuple[int, int], str] = {}  # output tensor, as it was when the layer returned it -> layer
    calls: dict[str, int] = {}
    found: dict[str, str] = {}
    dims: dict[str, int] = {}
    alive: list[Tensor] = []  # an id stays unique only while its tensor lives
    names = {m: n for n, m in model.named_modules()}

    def after_layer(module: nn.Module, args: object, output: Tensor) -> None:
        name = names[module]
        calls[name] = calls.get(name, 0) + 1
        made[id(output), output._version] = name
        dims[name] = output.ndim
        alive.append(output)

    def before_norm(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        name = names[module]
        calls[name] = calls.get(name, 0) + 1
        if args and (source := made.get((id(args[0]), args[0]._version))):
            found[name] = source

    handles = [module.register_forward_hook(after_layer) for module in names if isinstance(module, LAYERS)] + [
        module.register_forward_pre_hook(before_norm) for module in names if isinstance(module, NORMS)
    ]
    try:
        run(model)
    finally:
        for handle in handles:
            handle.remove()
    pairs: list[Pair] = []
    kept: dict[str, str] = {}
    for module, name in names.items():
        if not isinstance(module, NORMS):
            continue
        source = found.get(name)
        if source is None:
            kept[name] = "it does not follow a convolution or linear layer directly" if calls.get(name) else "not run"
        elif reason := _refusal(model.get_submodule(source), module, calls[source], calls[name], dims[source]):
            kept[name] = reason
        else:
            pairs.append((source, name))
    return pairs, kept


def _refusal(layer: nn.Module, norm: nn.Module, layer_calls: int, norm_calls: int, dims: int) -> str:
    if type(norm) not in NORMS:
        return f"its class {type(norm).__name__} does more than normalise"
    if getattr(norm, "running_mean", None) is None:
        return "it keeps no running statistics"
    if layer_calls > 1 or norm_calls > 1:
        return "it or the layer before it runs more than once"
    if isinstance(layer, TRANSPOSED) and layer.groups > 1:
        return "it follows a grouped transposed convolution"
    if isinstance(layer, nn.Linear) and dims != 2:
        return "it does not normalise the features of the linear layer before it"
    return ""


def _same(outputs: Sequence[Tensor], reference: Sequence[Tensor]) -> bool:
    for a, b in zip(outputs, reference, strict=True):
        difference = (a.double() - b.double()).norm()
        if not bool(difference <= TOLERANCE * b.double().norm() + 1e-12):
            return False
    return True

"""Fake-quantising modules by TensorRT's Q/DQ contract.

Symmetric INT8: ``x_q = clamp(round(x / scale), -128, 127)``, zero point 0, ``scale = range / 127``. A per-tensor scale
is a 0-d buffer: with shape [1] TensorRT-RTX builds the convolution in FP32 without a warning (docs/results/qdq.md).
Biases are not quantised: TensorRT adds them in FP32 and its parser refuses an INT32 bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

QUANT_MIN, QUANT_MAX = -128, 127
# Ranges below this are those of dead channels; their scale only has to be positive and finite.
MIN_RANGE = 1e-8
# Weight of the past in the running range, per training step: the last ~50 batches count.
MOMENTUM = 0.98


class FakeQuantizer(nn.Module):
    """Quantises and dequantises a tensor in place of the value that INT8 arithmetic would see.

    Args:
        axis: channel axis of per-channel scales; None for one scale.
        channels: length of that axis.

    Buffers:
        scale: float32, shape () or (channels,).
        zero_point: int32 zeros of the same shape.
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(self, axis: int | None = None, channels: int | None = None) -> None:
        super().__init__()
        shape = () if axis is None else (channels or 1,)
        self.axis = axis
        self.register_buffer("scale", torch.ones(shape, dtype=torch.float32))
        self.register_buffer("zero_point", torch.zeros(shape, dtype=torch.int32))
        self.enabled = True  # off while calibrating: values pass as they are
        self.follows = False  # whether the range follows the data in training mode
        self.ratio = 1.0  # calibrated range / mean maximum of a batch

    def forward(self, x: Tensor) -> Tensor:
        if not self.enabled:
            return x
        if self.training and self.follows:
            self.follow(x.detach())
        half = x.dtype is not torch.float32
        value = x.float() if half else x
        if self.axis is None:
            value = torch.fake_quantize_per_tensor_affine(value, self.scale, self.zero_point, QUANT_MIN, QUANT_MAX)
        else:
            value = torch.fake_quantize_per_channel_affine(
                value, self.scale, self.zero_point, self.axis, QUANT_MIN, QUANT_MAX
            )
        return value.to(x.dtype) if half else value

    def set_range(self, amax: Tensor | float) -> None:
        """Set the largest representable magnitude, per tensor or per channel."""
        value = torch.as_tensor(amax, dtype=torch.float32, device=self.scale.device)
        self.scale.copy_(value.clamp_min(MIN_RANGE) / QUANT_MAX)

    def follow(self, x: Tensor) -> None:
        """Weights: the range of the values as they are. Activations: a running range, at the calibrated ratio."""
        if self.axis is not None:
            self.set_range(channel_range(x, self.axis))
            return
        now = x.abs().amax().float() * self.ratio / QUANT_MAX
        self.scale.mul_(MOMENTUM).add_(now.clamp_min(MIN_RANGE / QUANT_MAX), alpha=1 - MOMENTUM)

    def extra_repr(self) -> str:
        return f"int8, axis={self.axis}"


def channel_range(weight: Tensor, axis: int) -> Tensor:
    """Largest magnitude per channel, shape (channels,)."""
    others = [d for d in range(weight.ndim) if d != axis]
    return weight.detach().abs().amax(dim=others).float()


class _Quantised(nn.Module):
    """What the quantised layers share. They are made by changing the class of a layer, so that its name, parameters
    and hooks stay."""

    weight: Tensor
    bias: Tensor | None
    input_quantizer: FakeQuantizer
    weight_quantizer: FakeQuantizer


class _Linear(_Quantised):
    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.input_quantizer(x), self.weight_quantizer(self.weight), self.bias)


class _Conv(_Quantised):
    def forward(self, x: Tensor) -> Tensor:
        conv = cast(Any, self)
        out: Tensor = conv._conv_forward(self.input_quantizer(x), self.weight_quantizer(self.weight), self.bias)
        return out


class _ConvTranspose(_Quantised):
    def forward(self, x: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        conv = cast(Any, self)
        dims = len(conv.kernel_size)
        padding = conv._output_padding(x, output_size, conv.stride, conv.padding, conv.kernel_size, dims, conv.dilation)
        call = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[dims - 1]
        out: Tensor = call(
            self.input_quantizer(x),
            self.weight_quantizer(self.weight),
            self.bias,
            conv.stride,
            conv.padding,
            padding,
            conv.groups,
            conv.dilation,
        )
        return out


def _made(mixin: type[nn.Module], base: type[nn.Module]) -> type[nn.Module]:
    return type(f"Quantised{base.__name__}", (mixin, base), {"__doc__": f"{base.__name__} on INT8 values."})


_CLASSES: dict[type[nn.Module], type[nn.Module]] = {
    nn.Linear: _made(_Linear, nn.Linear),
    nn.Conv1d: _made(_Conv, nn.Conv1d),
    nn.Conv2d: _made(_Conv, nn.Conv2d),
    nn.Conv3d: _made(_Conv, nn.Conv3d),
    nn.ConvTranspose1d: _made(_ConvTranspose, nn.ConvTranspose1d),
    nn.ConvTranspose2d: _made(_ConvTranspose, nn.ConvTranspose2d),
    nn.ConvTranspose3d: _made(_ConvTranspose, nn.ConvTranspose3d),
}
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
LAYERS = tuple(_CLASSES)


def refusal(layer: nn.Module) -> str:
    """Why a layer that has INT8 kernels cannot be quantised here; empty when it can."""
    if type(layer) not in _CLASSES:
        return f"its class {type(layer).__name__} changes the forward of {_base(layer).__name__}"
    if isinstance(layer, TRANSPOSED) and layer.groups > 1:
        return "a grouped transposed convolution has no per-channel axis that TensorRT accepts"
    return ""


def weight_axis(layer: nn.Module) -> int:
    """Output-channel axis of a layer's weight: 1 for transposed convolutions, else 0."""
    return 1 if isinstance(layer, TRANSPOSED) else 0


def convert(layer: nn.Module, input_quantizer: FakeQuantizer) -> None:
    """Turn a layer into its quantised form, in place; the weight's range is set from its values."""
    axis = weight_axis(layer)
    weight = cast(Tensor, layer.weight)
    quantizer = FakeQuantizer(axis, weight.shape[axis])
    quantizer.set_range(channel_range(weight, axis))
    layer.__class__ = _CLASSES[type(layer)]
    layer.add_module("input_quantizer", input_quantizer)
    layer.add_module("weight_quantizer", quantizer)


def _base(layer: nn.Module) -> type[nn.Module]:
    return next(c for c in type(layer).__mro__ if c in _CLASSES)

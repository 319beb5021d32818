"""NVIDIA ModelOpt's quantisers (`modelopt.torch.quantization`) behind the same placement, calibration and files.

Its own INT8 preset is not used: that one quantises the inputs of LayerNorm and MaxPool too, leaves out the skip
inputs of residual additions, does not fold BatchNorm, and disables layers by their names.
Nothing of its pickled state is stored: the placement and the ranges rebuild the model.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from deploychain.backends.qat_placement import Placement, place
from deploychain.backends.qat_quantizer import QUANT_MAX, channel_range, weight_axis
from deploychain.errors import CapabilityError

# ModelOpt exports a smaller amax as if it were 0.
_MIN_RANGE = 1e-6


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """ModelOpt prints and warns while it is imported and while it converts."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def _modelopt() -> Any:
    try:
        with _quiet():
            import modelopt.torch.quantization as mtq
    except ImportError as error:
        raise CapabilityError(
            f"qat.backend is modelopt, which cannot be imported: {error}",
            where="stages.qat.backend",
            remedy='pip install nvidia-modelopt requests "huggingface_hub<1", or use backend: native',
        ) from None
    logging.getLogger("modelopt").setLevel(logging.ERROR)
    return mtq


class ModelOptQuantisers:
    """`TensorQuantizer` modules. Ranges stay as calibrated, also those of weights."""

    name: Literal["native", "modelopt"] = "modelopt"

    def __init__(self) -> None:
        self._mtq = _modelopt()
        self._model: nn.Module | None = None
        self._shapes: dict[nn.Module, list[int]] = {}  # weight quantiser -> shape of its amax, 1 but for the channels

    def place(self, model: nn.Module, placement: Placement) -> dict[str, nn.Module]:
        from modelopt.torch.quantization.nn import TensorQuantizer

        self._model = model
        chosen: list[dict[str, Any]] = [{"quantizer_name": "*", "enable": False}]
        for layer in placement.layers:
            axis = weight_axis(model.get_submodule(layer))
            cfg = {"num_bits": 8, "axis": axis}
            chosen.append({"quantizer_name": f"{layer}.weight_quantizer", "cfg": cfg, "enable": True})
        with _quiet():
            self._mtq.quantize(model, {"quant_cfg": chosen, "algorithm": None}, forward_loop=None)

        def make() -> nn.Module:
            made: nn.Module = TensorQuantizer()
            return made

        def convert(layer: nn.Module, input_quantizer: nn.Module) -> None:
            layer.add_module("input_quantizer", input_quantizer)
            weight, axis = cast(Tensor, layer.weight), weight_axis(layer)
            quantizer = cast(nn.Module, layer.weight_quantizer)
            self._shapes[quantizer] = [-1 if d == axis else 1 for d in range(weight.ndim)]
            self.set_range(quantizer, channel_range(weight, axis))

        return place(model, placement, make, convert)

    def enable(self, quantizer: nn.Module, on: bool) -> None:
        switch = cast(Any, quantizer)
        if on:
            switch.enable_quant()
        else:
            switch.disable_quant()

    def set_range(self, quantizer: nn.Module, amax: Tensor) -> None:
        weight = next(iter(self._model.parameters())) if self._model is not None else amax
        value = amax.detach().to(weight.device, torch.float32).clamp_min(_MIN_RANGE)
        cast(Any, quantizer).amax = value.reshape(self._shapes[quantizer]) if value.ndim else value

    def scale(self, quantizer: nn.Module) -> Tensor:
        amax = cast(Tensor, cast(Any, quantizer).amax).detach().float() / QUANT_MAX
        return amax.reshape(-1) if quantizer in self._shapes else amax.reshape(())

    def follow(self, model: nn.Module, ratios: Mapping[str, float]) -> Callable[[], None]:
        return lambda: None

"""The tensors at a network's border, where FP32 is usual whatever was asked."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from deploychain.precision import Precision
from deploychain.records import LayerKind, LayerRecord


def network_border(layers: Sequence[LayerRecord], network_io: Collection[str] | None) -> frozenset[str]:
    """Names of the FP32 tensors at the network's border, followed through copies that keep FP32."""
    produced = {t.name for layer in layers for t in layer.outputs}
    consumed = {t.name for layer in layers for t in layer.inputs}
    names: set[str] = set()
    for layer in layers:
        for tensor in (*layer.inputs, *layer.outputs):
            if tensor.dtype is not Precision.FP32 or tensor.name in names:
                continue
            if network_io is not None:
                if tensor.name in network_io:
                    names.add(tensor.name)
            elif (tensor.name not in produced or tensor.name not in consumed) and "const" not in tensor.name:
                names.add(tensor.name)
    passing = (LayerKind.COPY, LayerKind.HELPER, LayerKind.DATA_MOVEMENT)
    for layer in layers:  # inputs: forward
        if layer.kind in passing and any(t.name in names for t in layer.inputs):
            names.update(t.name for t in layer.outputs if t.dtype is Precision.FP32)
    for layer in reversed(layers):  # outputs: backward
        if layer.kind in passing and any(t.name in names for t in layer.outputs):
            names.update(t.name for t in layer.inputs if t.dtype is Precision.FP32)
    return frozenset(names)

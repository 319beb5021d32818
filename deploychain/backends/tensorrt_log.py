"""What TensorRT says while it builds: the listing of layers in it, and which layer an error names."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LAYER_BLOCKS = ("Layers:", "Engine Layer Information:", "I/O Tensors:", "Bindings:")
_LAYER_LINES = ("Name: ", "Layer(")
ERRORS = ("INTERNAL_ERROR", "ERROR")


def layer_text(rows: Sequence[tuple[str, str]]) -> str:
    """The builder's own words on each layer, from its verbose log: `Layers:` ... `I/O Tensors:` ..."""
    kept: list[str] = []
    inside = False
    for severity, text in rows:
        if severity == "VERBOSE" and text.startswith(_LAYER_BLOCKS):
            inside = True
            kept.append(text)
        elif inside and severity == "VERBOSE" and text.startswith(_LAYER_LINES):
            kept.append(text)
        else:
            inside = False
    return "\n".join(kept)


def names_layer(text: str, name: str) -> bool:
    """True where ``name`` stands in ``text`` as a whole word: the library writes /post/nms_0 for layer /post/nms."""
    return re.search(rf"(?<![\w/.]){re.escape(name)}(?:_\d+)?(?![\w/.]*\w)", text) is not None


def is_driver_noise(text: str) -> bool:
    """The library probes for a driver in every failure; on a machine without a GPU that is never the reason."""
    return "cudaError 35" in text or "CUDA driver version is insufficient" in text

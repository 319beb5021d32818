"""The inputs of an ONNX model: names, shapes with named axes, and NumPy types."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from deploychain.backends import onnx_graph
from deploychain.profiles import NetworkInput


def network_inputs(model: Path | onnx.ModelProto) -> dict[str, tuple[NetworkInput, np.dtype[np.generic]]]:
    """Input name -> (shape and axis names, type), in the model's order; initialisers are no inputs.

    Raises:
        ArtifactError: the file is no ONNX model.
    """
    graph = (onnx_graph.load(model) if isinstance(model, Path) else model).graph
    weights = {w.name for w in graph.initializer}
    return {value.name: _describe(value) for value in graph.input if value.name not in weights}


def input_types(model: Path | onnx.ModelProto) -> dict[str, np.dtype[np.generic]]:
    """Input name -> type, of a file or a loaded model.

    Raises:
        ArtifactError: the file is no ONNX model.
    """
    return {name: dtype for name, (_, dtype) in network_inputs(model).items()}


def _describe(value: onnx.ValueInfoProto) -> tuple[NetworkInput, np.dtype[np.generic]]:
    kind = value.type.tensor_type
    dims = kind.shape.dim
    shape = tuple(d.dim_value if d.HasField("dim_value") else -1 for d in dims)
    return NetworkInput(value.name, shape, tuple(d.dim_param for d in dims)), helper.tensor_dtype_to_np_dtype(
        kind.elem_type
    )

"""From an ONNX node to the torch module that made it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from deploychain.engine.classify import is_qdq_node
from deploychain.records import LayerRecord


def torch_module(node: str) -> str | None:
    """The module path in a node name of the TorchScript exporter; an empty string is the root module.

    ``/layer1/layer1.0/conv1/Conv`` gives ``layer1.0.conv1``: the last part is the operator, and a part that starts
    with the previous part and a dot replaces it (containers repeat their name). None where the name holds no path
    (other exporters: ``Conv_0``, ``node_conv2d``).
    """
    if not node.startswith("/"):
        return None
    path: list[str] = []
    for part in node.split("/")[1:-1]:
        if path and part.startswith(path[-1] + "."):
            path[-1] = part
        elif part:
            path.append(part)
    return ".".join(path)


def module_from_scopes(text: str) -> str | None:
    """The module path in the ``pkg.torch.onnx.name_scopes`` that the dynamo exporter stores with a node.

    A Python list of nested scopes, the node itself last: ``['', 'layer1', 'layer1.0', 'conv2d']``.
    """
    if len(text) > 20_000:
        return None
    try:
        scopes = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if not isinstance(scopes, list) or len(scopes) < 2 or not all(isinstance(s, str) for s in scopes):
        return None
    return str(scopes[-2])


def module_of(nodes: Sequence[str], scopes: Mapping[str, str] | None = None) -> str | None:
    """The torch module of a layer: that of its first node which is no quantiser and whose module is known."""
    fallback: str | None = None
    for node in nodes:
        module = (scopes or {}).get(node)
        if module is None:
            module = torch_module(node)
        if module is None:
            continue
        if not is_qdq_node(node):
            return module
        if fallback is None:
            fallback = module
    return fallback


def layer_module(layer: LayerRecord, scopes: Mapping[str, str] | None = None) -> str | None:
    """`module_of` for a layer record."""
    return module_of(layer.onnx_nodes, scopes)

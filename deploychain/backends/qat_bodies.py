"""Module bodies: a module's own forward as a torch.fx graph, its children left whole."""

from __future__ import annotations

import inspect
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from deploychain.errors import StageError

Key = tuple[Any, ...]  # identity of a tensor
Value = tuple[Key, torch.Size, torch.dtype]
Edit = tuple[str, str, str]  # node, its operand, attribute of the module that the operand passes through
_PRODUCTS = (
    F.scaled_dot_product_attention,
    torch.matmul,
    torch.bmm,
    torch.baddbmm,
    torch.einsum,
    operator.matmul,
)


class _Body(fx.Tracer):
    """Traces one forward; every child module is a leaf."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return True


def trace(module: nn.Module) -> fx.Graph:
    """The graph of a module's own forward; whatever the traced code raises is raised."""
    # Optional arguments keep their defaults: a placeholder would take the wrong side of `if mask is None`.
    return _Body().trace(module, concrete_args=_defaults(module) or None)


def _defaults(module: nn.Module) -> dict[str, Any]:
    parameters = inspect.signature(module.forward).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


class _Recorder(fx.Interpreter):
    """Runs a traced body and keeps, for every node that made a tensor: its key, shape and dtype."""

    def __init__(self, module: nn.Module, graph: fx.Graph, key: Callable[[Tensor], Key]) -> None:
        super().__init__(fx.GraphModule(module, graph))
        self._key = key
        self.values: dict[str, Value] = {}

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        if isinstance(result, Tensor) and n.op != "get_attr":
            self.values[n.name] = (self._key(result), result.shape, result.dtype)
        return result


def record(
    module: nn.Module, graph: fx.Graph, args: tuple[Any, ...], kwargs: dict[str, Any], key: Callable[[Tensor], Key]
) -> tuple[dict[str, Value], Any]:
    """Run a traced body on what the module was really called with; its output must be the module's own.

    Raises:
        ValueError: the traced form computes something else, or an optional argument is used.
    """
    defaults = _defaults(module)
    bound = inspect.signature(module.forward).bind(*args, **kwargs)
    for name, value in bound.arguments.items():
        if name in defaults and value is not defaults[name]:
            raise ValueError(f"the optional argument {name} is used")
    bound.apply_defaults()
    recorder = _Recorder(module, graph, key)
    expected = [t.clone() for t in tensors_of(module(*args, **kwargs))]
    output = recorder.run(*bound.args, *bound.kwargs.values())
    got = tensors_of(output)
    same = len(got) == len(expected) and all(
        torch.allclose(a, b, equal_nan=True) for a, b in zip(got, expected, strict=True)
    )
    if not same:
        raise ValueError("its traced form computes something else")
    return recorder.values, output


def insert(module: nn.Module, edits: Sequence[Edit], where: str) -> None:
    """Pass operands through modules, in a module's forward. The module stays: only its forward is replaced.

    Raises:
        StageError: its forward lacks a node that an edit names.
    """
    graph = trace(module)
    nodes = {n.name: n for n in graph.nodes}
    for node, operand, attribute in edits:
        if node not in nodes or operand not in nodes:
            raise StageError(
                f"its forward has no operation {node!r} on {operand!r} any more",
                where=where or "the model",
                remedy="run the qat stage again with --force",
            )
        with graph.inserting_before(nodes[node]):
            quantised = graph.call_module(attribute, (nodes[operand],))
        nodes[node].replace_input_with(nodes[operand], quantised)
    rewritten = type(fx.GraphModule(module, graph)).forward
    module.forward = types.MethodType(rewritten, module)


def is_add(node: fx.Node) -> bool:
    """Whether a node adds."""
    if node.op == "call_function":
        return node.target in (operator.add, operator.iadd, torch.add)
    return node.op == "call_method" and node.target in ("add", "add_")


def is_product(node: fx.Node) -> bool:
    """Whether a node is a matrix product in the forward itself, as in attention."""
    return (node.op == "call_function" and node.target in _PRODUCTS) or (
        node.op == "call_method" and node.target in ("matmul", "bmm", "baddbmm")
    )


def operands(node: fx.Node) -> list[fx.Node]:
    """The tensors that an addition or concatenation joins; empty for other nodes and for sums with constants."""
    if is_add(node):
        given = [*node.args, *([node.kwargs["other"]] if "other" in node.kwargs else [])]
        pair = [a for a in given if isinstance(a, fx.Node)]
        return pair if len(pair) == 2 and "alpha" not in node.kwargs else []
    if node.op == "call_function" and node.target in (torch.cat, torch.concat, torch.concatenate):
        parts = node.args[0] if node.args else node.kwargs.get("tensors")
        if isinstance(parts, (list, tuple)) and all(isinstance(p, fx.Node) for p in parts):
            return [p for p in parts if isinstance(p, fx.Node)]
    return []


def mentions_add(module: nn.Module) -> bool:
    """Whether an untraceable forward may hold an addition or concatenation that would have been quantised."""
    try:
        source = inspect.getsource(type(module).forward)
    except (OSError, TypeError):
        return True
    return any(word in source for word in ("+", ".add", ".cat(", ".concat"))


def tensors_of(value: Any) -> list[Tensor]:
    """The tensors in nested tuples, lists and mappings, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Mapping):
        return [t for v in value.values() for t in tensors_of(v)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_of(v)]
    return []

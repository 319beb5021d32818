"""What a plan knows about a node: names, types, constants. No framework needed to reason about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deploychain.numerics.range import TensorRange

# Operators that hand on the values that they were given: no rounding of their own.
DATA_MOVEMENT = frozenset(
    {"Compress", "Concat", "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather", "GatherElements", "GatherND"}
    | {"Identity", "Pad", "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Trilu"}
    | {"Unsqueeze"}
)
# Selecting or clamping given values is exact as well.
EXACT = DATA_MOVEMENT | frozenset(
    ("Abs", "Clip", "GlobalMaxPool", "Max", "MaxPool", "Min", "Neg", "ReduceMax", "ReduceMin", "Relu", "TopK", "Where")
)
QUANTISABLE = frozenset(("Conv", "ConvTranspose", "Gemm", "MatMul"))
HEAVY = QUANTISABLE | {"LSTM", "GRU", "RNN", "Einsum"}  # where reduced precision pays


@dataclass(frozen=True, slots=True)
class Constant:
    """A float initializer that a node reads."""

    name: str
    range: TensorRange

    @property
    def scalar(self) -> bool:
        return self.range.count == 1


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """One node of a prepared FP32 graph."""

    name: str
    op: str
    module: str | None
    inputs: tuple[str, ...]  # all, in order; empty strings for optional ones
    outputs: tuple[str, ...]
    float_inputs: tuple[str, ...] = ()  # computed FP32 tensors (no weights)
    float_outputs: tuple[str, ...] = ()
    constants: tuple[Constant, ...] = ()
    not_lowerable: str = ""  # why the operator cannot be converted; empty: it can
    attributes: Mapping[str, Any] = field(default_factory=dict)
    output_type: str = ""  # precision name of the first output

    @property
    def is_float(self) -> bool:
        """Whether its precision means anything: Shape and Size read a float tensor, but none of its values."""
        return bool(self.float_inputs or self.float_outputs) and self.op not in ("Shape", "Size")


@dataclass(frozen=True, slots=True)
class Wiring:
    """Who makes and who reads each tensor."""

    nodes: Mapping[str, NodeInfo]
    producer: Mapping[str, str]  # tensor -> node name
    readers: Mapping[str, tuple[str, ...]]  # tensor -> node names

    @classmethod
    def of(cls, infos: Sequence[NodeInfo]) -> Wiring:
        readers: dict[str, list[str]] = {}
        for info in infos:
            for name in info.inputs:
                if name:
                    readers.setdefault(name, []).append(info.name)
        return cls(
            {i.name: i for i in infos},
            {out: i.name for i in infos for out in i.outputs},
            {name: tuple(who) for name, who in readers.items()},
        )

    def maker(self, tensor: str) -> NodeInfo | None:
        name = self.producer.get(tensor)
        return self.nodes[name] if name is not None else None

    def feeding(self, info: NodeInfo) -> tuple[NodeInfo, ...]:
        """The nodes whose float results a node reads."""
        found = (self.maker(t) for t in info.float_inputs)
        return tuple(n for n in found if n is not None)

    def following(self, info: NodeInfo) -> tuple[NodeInfo, ...]:
        """The nodes that read a node's float results."""
        readers = (self.nodes[r] for t in info.float_outputs for r in self.readers.get(t, ()))
        return tuple(n for n in readers if n.is_float)

    def source(self, tensor: str) -> NodeInfo | None:
        """The node that computed a tensor's values, through data movement."""
        made = self.maker(tensor)
        while made is not None and made.op in DATA_MOVEMENT and made.float_inputs:
            made = self.maker(made.float_inputs[0])
        return made

    def quantisers(self, info: NodeInfo) -> tuple[str, ...]:
        """The DequantizeLinear nodes that a node reads."""
        found = (self.source(name) for name in info.inputs if name)
        return tuple(n.name for n in found if n is not None and n.op == "DequantizeLinear")

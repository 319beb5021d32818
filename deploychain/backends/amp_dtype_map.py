"""Which dtype every op of a model has under CUDA autocast, without a GPU.

The policy lists are read from the header of the *installed* torch, since they change between releases (interpolate
joined the FP32 list in 2024), and walked over the graph of `torch.export`. CPU autocast is no model of CUDA autocast:
softmax, layer_norm, exp, sum, pow and interpolate differ.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from deploychain.errors import CapabilityError

_MACROS = (
    ("AT_FORALL_LOWER_PRECISION_FP", "low"),
    ("AT_FORALL_FP32", "fp32"),
    ("AT_FORALL_FP32_SET_OPT_DTYPE", "fp32"),
    ("AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE", "fp32"),
    ("AT_FORALL_PROMOTE", "promote"),
)
# Registered by hand in autocast_mode.cpp, not through the lists.
_BY_HAND = {"aten::norm.Scalar": "fp32", "aten::norm.ScalarOpt_dim": "fp32", "aten::binary_cross_entropy": "banned"}
# Operators that torch.export keeps whole: no policy of their own, but what they are made of has one. The RNNs run in
# cuDNN, whose autocast wrapper (AutocastRNN.cpp) casts input, state and weights.
_MADE_OF = {
    **{f"aten::conv{d}d.padding": "low" for d in (1, 2, 3)},
    **{f"aten::{rnn}.{form}": "low" for rnn in ("lstm", "gru", "rnn_tanh", "rnn_relu") for form in ("input", "data")},
    **dict.fromkeys(("aten::cross_entropy_loss", "aten::nll_loss_nd", "aten::linalg_norm", "aten::linalg_norm.ord_str",
                     "aten::trapezoid.x", "aten::trapezoid.dx"), "fp32"),
}  # fmt: skip
# No policy, and they take parameters of another dtype than their input: the output has the input's.
_FIRST_ARGUMENT = ("batch_norm", "instance_norm", "_native_batch_norm", "native_batch_norm", "cudnn_batch_norm")
_HALF = (torch.float16, torch.bfloat16)
_WIDTH = {torch.float16: 1, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3}


@dataclass(frozen=True, slots=True)
class OpDtype:
    """One op of the graph: the dtype of its (first) output, and what decided it."""

    node: str
    op: str
    module: str  # path of the module it belongs to
    dtype: str  # float16, bfloat16, float32, float64; "" for integers and booleans
    policy: str  # low | fp32 | promote | banned | explicit | follows input | custom
    inputs: tuple[str, ...] = ()  # dtypes of the floating inputs


@dataclass(frozen=True, slots=True)
class DtypeMap:
    """The whole model."""

    ops: tuple[OpDtype, ...]
    dtype: str  # what the region was opened with
    torch: str
    policies: int  # entries in the lists of the installed torch
    scalars: Mapping[str, float] = field(default_factory=dict)  # add, sub and clamp nodes -> their constant
    grids: Mapping[str, tuple[str, int]] = field(
        default_factory=dict
    )  # grid_sample nodes -> (dtype of the grid, largest side)

    def counts(self) -> dict[str, int]:
        """How many ops have a floating output in each dtype."""
        return dict(Counter(op.dtype for op in self.ops if op.dtype))

    def by_module(self) -> dict[str, tuple[str, ...]]:
        """The dtypes that occur in each module."""
        found: dict[str, list[str]] = {}
        for op in self.ops:
            if op.dtype and op.dtype not in found.setdefault(op.module, []):
                found[op.module].append(op.dtype)
        return {name: tuple(dtypes) for name, dtypes in found.items()}


@lru_cache(maxsize=1)
def policy_lists() -> Mapping[str, str]:
    """Autocast policy by operator name ("aten::linear", "aten::sum.dim_IntList"), from the installed torch.

    Raises:
        CapabilityError: this torch comes without its headers.
    """
    header = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
    try:
        text = header.read_text(encoding="utf-8")
    except OSError:
        raise CapabilityError(
            "the autocast policy lists cannot be read",
            where=str(header),
            remedy="install torch from a wheel, which has its headers",
        ) from None
    found: dict[str, str] = dict(_BY_HAND)
    for macro, policy in _MACROS:
        body = re.search(r"#define " + macro + r"\(_\)(.*?)(?:\n\n|\n#)", text, re.S)
        if body is None:
            continue
        for entry in re.finditer(r"_\((\w+)(?:,\s*(\w+))?\)", body[1]):
            name = f"aten::{entry[1]}"
            found[f"{name}.{entry[2]}" if entry[2] else name] = policy
    if len(found) < 60:
        raise CapabilityError(
            f"only {len(found)} autocast policies found",
            where=str(header),
            remedy="this torch has another header layout; please report it",
        )
    return found


def policy_of(op: torch._ops.OpOverload) -> str | None:
    """The policy of an operator under CUDA autocast; None where it has none."""
    lists = policy_lists()
    base, overload = op._schema.name, op._schema.overload_name
    name = f"{base}.{overload}" if overload else base
    if name in lists or name in _MADE_OF:
        return lists.get(name) or _MADE_OF[name]
    if not overload or overload == "vec" or overload.startswith("default"):
        return lists.get(base)
    return None


def dtype_map(
    model: nn.Module,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    dtype: torch.dtype = torch.float16,
) -> DtypeMap:
    """The dtypes of a model under `torch.autocast("cuda", dtype=dtype)`.

    Raises:
        Whatever `torch.export` raises for a model that it cannot export.
    """
    program = torch.export.export(model, args, dict(kwargs or {}), strict=False)
    known: dict[str, torch.dtype | None] = {}
    ops: list[OpDtype] = []
    scalars: dict[str, float] = {}
    grids: dict[str, tuple[str, int]] = {}
    for node in program.graph.nodes:
        meta = _first_tensor(node.meta.get("val"))
        actual = meta.dtype if meta is not None and meta.dtype.is_floating_point else None
        if node.op in ("placeholder", "get_attr"):
            known[node.name] = actual
            continue
        if node.op != "call_function":
            continue
        if node.target is operator.getitem:
            source = node.args[0]
            known[node.name] = known.get(source.name) if actual is not None else None
            continue
        inputs = [known[n.name] for n in node.all_input_nodes if known.get(n.name) is not None]
        result, policy = _decide(node, [d for d in inputs if d is not None], actual, dtype)
        known[node.name] = result if actual is not None else None
        scalar = _scalar(node)
        if scalar is not None:
            scalars[node.name] = scalar
        if "grid_sample" in str(node.target) and len(node.args) > 1:
            grid, image = node.args[1], _first_tensor(node.args[0].meta.get("val"))
            grids[node.name] = (_name(known.get(grid.name)), max(image.shape[2:]) if image is not None else 0)
        ops.append(
            OpDtype(
                node=node.name,
                op=str(node.target),
                module=_module(node),
                dtype=_name(known[node.name]),
                policy=policy,
                inputs=tuple(_name(d) for d in inputs),
            )
        )
    return DtypeMap(tuple(ops), _name(dtype), torch.__version__, len(policy_lists()), scalars, grids)


def _scalar(node: Any) -> float | None:
    """The constant of `x + c`, `x - c` and `clamp(x, min=c)`."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return None
    leaf = node.target._schema.name.partition("::")[2]
    if leaf not in ("add", "sub", "clamp", "clamp_min", "add_", "rsub"):
        return None
    numbers = [
        a for a in (*node.args[1:2], node.kwargs.get("min")) if isinstance(a, (int, float)) and not isinstance(a, bool)
    ]
    return float(numbers[0]) if numbers else None


def _decide(
    node: Any, inputs: list[torch.dtype], actual: torch.dtype | None, low: torch.dtype
) -> tuple[torch.dtype | None, str]:
    op = node.target
    if not isinstance(op, torch._ops.OpOverload):
        return _widest(inputs) or actual, "follows input"
    policy = policy_of(op)
    given = node.kwargs.get("dtype")
    explicit = given or next((a for a in node.args[1:] if isinstance(a, torch.dtype)), None)
    if op._schema.name == "aten::type_as" and inputs:
        return inputs[-1], "follows input"
    if policy is None and op.namespace == "aten" and op._schema.name in ("aten::to", "aten::_to_copy"):
        return (explicit, "explicit") if explicit is not None else (_widest(inputs[:1]) or actual, "follows input")
    if explicit is not None and isinstance(explicit, torch.dtype) and explicit.is_floating_point:
        return explicit, "explicit"
    if policy == "low":
        return (low if torch.float64 not in inputs else _widest(inputs)), "low"
    if policy == "fp32":
        return (torch.float32 if torch.float64 not in inputs else torch.float64), "fp32"
    if policy == "banned":
        return torch.float32, "banned"
    if policy == "promote":
        return _widest(inputs) or actual, "promote"
    if op.namespace not in ("aten", "prim", "prims"):
        return _widest(inputs) or actual, "custom"
    if not inputs:
        return actual, "explicit"
    leaf = op._schema.name.partition("::")[2]
    if leaf.startswith(_FIRST_ARGUMENT) or leaf.endswith("_"):
        return inputs[0], "follows input"
    return _widest(inputs), "follows input"


def _widest(dtypes: list[torch.dtype]) -> torch.dtype | None:
    best: torch.dtype | None = None
    for dtype in dtypes:
        if best is None or _WIDTH.get(dtype, 0) > _WIDTH.get(best, 0):
            best = dtype
        elif dtype != best and dtype in _HALF and best in _HALF:
            best = torch.float32
    return best


def _first_tensor(value: Any) -> torch.Tensor | None:
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, (list, tuple)):
        for item in value:
            found = _first_tensor(item)
            if found is not None:
                return found
    return None


def _module(node: Any) -> str:
    stack = node.meta.get("nn_module_stack") or {}
    last = next(reversed(stack.values()), None) if stack else None
    return str(last[0]).removeprefix("L['self'].").removeprefix("L['self']") if last else ""


def _name(dtype: torch.dtype | None) -> str:
    return str(dtype).removeprefix("torch.") if dtype is not None else ""

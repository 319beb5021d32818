"""Proof of an exported file: it is valid, and it does what the torch model does, at other sizes too."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
import torch
from torch import Tensor, nn

from deploychain.backends import onnx_graph
from deploychain.backends.ort import open_session
from deploychain.errors import StageError

Arrays = Mapping[str, npt.NDArray[Any]]
Axes = Mapping[str, Mapping[int, str]]
BATCH_SIZES = (1, 5)  # beside the one that was exported
# Share of elements of an integer or boolean output that may differ: the order of ties in top-k is free.
TIES = 0.01
# A value at the border between two INT8 steps falls on either side for any FP32 rounding difference, and the step is
# carried on. What such differences do to the torch model itself is measured, with noise of this relative size at the
# output of every layer, and a file may differ that much more often than torch from itself.
ROUNDING_NOISE = 1e-6
NOISE_FACTOR = 4.0
LARGEST_LIMIT = 0.1


@dataclass(frozen=True, slots=True)
class Callee:
    """The torch side of a proof."""

    call: Callable[..., Mapping[str, Tensor]]  # flat input tensors, in order -> outputs by name
    inputs: Mapping[str, Tensor]  # the example
    model: nn.Module


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison of the file with the model."""

    sizes: Mapping[str, int]  # of every dynamic axis
    shapes: Mapping[str, tuple[int, ...]]  # output -> real shape
    relative_error: Mapping[str, float]  # output -> ||a - b|| / ||b||, or share of unequal elements (integers)
    max_abs_error: Mapping[str, float]
    limit: Mapping[str, float]  # what relative_error was held against


@dataclass(frozen=True, slots=True)
class Proof:
    """Everything that was checked."""

    opset: int
    checks: tuple[Check, ...]
    notes: tuple[str, ...]

    @property
    def worst(self) -> float:
        return max((e for c in self.checks for e in c.relative_error.values()), default=0.0)


def prove(path: Path, callee: Callee, *, opset: int, dynamic_axes: Axes, tolerance: float) -> Proof:
    """Prove a file against the model that it was exported from.

    Checked: opset, `onnx.checker` with full_check, an onnxruntime session; outputs against torch at the exported
    size, at two other sizes of every named axis and with all of them changed at once; every named output axis has the
    size of its name.

    Raises:
        StageError: which of these failed, with tensor, axis and what was found.
    """
    onnx_graph.check(path, opset)
    session = open_session(path)
    sizes: dict[str, int] = {}
    for tensor, named in dynamic_axes.items():
        for axis, label in named.items():
            if tensor in callee.inputs:
                size = callee.inputs[tensor].shape[axis]
                if sizes.setdefault(label, size) != size:
                    raise StageError(
                        f"the axis {label!r} has sizes {sizes[label]} and {size} in the example",
                        where=f"dynamic_axes.{tensor}",
                        remedy="give axes of different size different names",
                    )
    comparison = _Comparison(path, session, callee, dynamic_axes, tolerance)
    checks = [comparison.run(sizes, changed=())]
    notes: list[str] = []
    others: dict[str, int] = {}
    for label in sizes:
        tried = 0
        for size in _other_sizes(label, sizes[label], callee.inputs, dynamic_axes):
            if tried == 2:
                break
            try:
                checks.append(comparison.run({**sizes, label: size}, changed=(label,)))
            except _TorchError as error:
                comparison.refusals[label] = error
                continue
            others[label] = size
            tried += 1
        if not tried:
            raise comparison.refusals[label].as_stage_error(sizes[label])
        if tried == 1:
            notes.append(f"the axis {label!r} was checked at {sizes[label]} and {others[label]}: torch takes no other")
    if any(c.limit[n] > tolerance and c.relative_error[n] > tolerance for c in checks for n in c.limit):
        most = max(c.relative_error[n] for c in checks for n in c.limit)
        notes.append(
            f"outputs differ from torch by up to {most:.1e}: no more than FP32 rounding noise changes torch's own "
            "(values at the border of two INT8 steps)"
        )
    if len(others) > 1:
        try:
            checks.append(comparison.run({**sizes, **others}, changed=tuple(others)))
        except _TorchError as error:
            notes.append(f"the axes {', '.join(others)} were not changed at once: torch says {error}")
    _check_names(checks, dynamic_axes, callee.inputs)
    return Proof(opset, tuple(checks), tuple(notes))


def settle_dimensions(model: onnx.ModelProto, proof: Proof) -> bool:
    """Give the output axes that the exporter made names up for their true size or name.

    An axis whose size was the same in all checks is fixed; one that always had the size of a named axis gets that
    name; any other gets ``<output>_<axis>``.

    Returns:
        Whether anything was changed.
    """
    changed = False
    asked = {name for check in proof.checks for name in check.sizes}
    for value in model.graph.output:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param in asked or dim.WhichOneof("value") == "dim_value":
                continue
            seen = [c.shapes[value.name][axis] for c in proof.checks]
            same = [n for n in sorted(asked) if all(c.sizes[n] == s for c, s in zip(proof.checks, seen, strict=True))]
            if len(set(seen)) == 1:
                dim.dim_value = seen[0]
            else:
                dim.dim_param = same[0] if same else f"{value.name}_{axis}"
            changed = True
    return changed


class _TorchError(Exception):
    """The model itself does not take an input of this size."""

    def __init__(self, label: str, size: int, error: Exception) -> None:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        super().__init__(f"{lines[0][:200]}")
        self.label = label
        self.size = size

    def as_stage_error(self, exported: int) -> StageError:
        return StageError(
            f"the model fixes the axis {self.label!r} at {exported}: at {self.size} torch says {self}",
            where=f"dynamic_axes: {self.label}",
            remedy="take the axis out of dynamic_axes, or use -1 or x.shape instead of a number in view/reshape",
        )


class _Comparison:
    def __init__(self, path: Path, session: ort.InferenceSession, callee: Callee, axes: Axes, tolerance: float) -> None:
        self._path = path
        self._session = session
        self._callee = callee
        self._axes = axes
        self._tolerance = tolerance
        self._noise: dict[str, float] = {}  # by output, once measured
        self.refusals: dict[str, _TorchError] = {}

    def run(self, sizes: Mapping[str, int], changed: Sequence[str]) -> Check:
        feed = {
            name: _resized(tensor, {a: sizes[n] for a, n in self._axes.get(name, {}).items()})
            for name, tensor in self._callee.inputs.items()
        }
        try:
            expected = {k: v.numpy() for k, v in self._callee.call(*feed.values()).items()}
        except Exception as error:  # the user's model raises what it likes
            if not changed:
                raise StageError(f"the model fails on its example: {error}", where="export") from error
            raise _TorchError(changed[0], sizes[changed[0]], error) from error
        at = ", ".join(f"{n}={s}" for n, s in sizes.items()) or "the exported sizes"
        try:
            known = {i.name for i in self._session.get_inputs()}
            given = {n: t.numpy() for n, t in feed.items() if n in known}
            got = dict(zip(expected, self._session.run(list(expected), given), strict=True))
        except Exception as error:
            raise self._baked(at, changed, " ".join(str(error).split())) from None
        relative: dict[str, float] = {}
        largest: dict[str, float] = {}
        limits: dict[str, float] = {}
        for name, reference in expected.items():
            value = np.asarray(got[name])
            if value.shape != reference.shape:
                found = f"output {name!r} has shape {list(value.shape)}, torch gives {list(reference.shape)}"
                raise self._baked(at, changed, found)
            relative[name], largest[name] = _errors(value, reference)
            limit = self._tolerance if reference.dtype.kind in "fc" else TIES
            if not relative[name] <= limit:
                if name not in self._noise:
                    self._noise[name] = _rounding_noise(self._callee, list(feed.values()), name, reference)
                limit = max(limit, min(NOISE_FACTOR * self._noise[name], LARGEST_LIMIT))
            limits[name] = limit
            if not relative[name] <= limit:
                raise StageError(
                    f"output {name!r} differs from torch at {at}: relative error {relative[name]:.2g}, "
                    f"allowed {limit:.2g}"
                    f" (largest difference {largest[name]:.3g})",
                    where=self._path.name,
                    remedy="at the exported size: an operator is exported wrongly; at another: the graph holds sizes "
                    "or values of the example"
                    if changed
                    else "an operator is exported wrongly, or the model is not deterministic in eval mode",
                )
        return Check(dict(sizes), {n: tuple(a.shape) for n, a in expected.items()}, relative, largest, limits)

    def _baked(self, at: str, changed: Sequence[str], found: str) -> StageError:
        if not changed:
            return StageError(
                f"onnxruntime does not run the file as torch runs the model: {found[:300]}", where=self._path.name
            )
        node = re.search(r"Name:'([^']*)'", found)
        attention = [n for n, m in self._callee.model.named_modules() if isinstance(m, nn.MultiheadAttention)]
        remedy = "compute sizes from x.shape inside forward (not int() or .item()), use -1 in view/reshape"
        if attention:
            remedy = (
                f"nn.MultiheadAttention ({attention[0]}) is exported with the sizes of the example: "
                "use F.scaled_dot_product_attention, or take the axis out of dynamic_axes"
            )
        return StageError(
            f"the exported graph fixes the axis {' and '.join(map(repr, changed))}: at {at} {found[:300]}",
            where=f"{self._path.name}: node {node.group(1)}" if node else self._path.name,
            remedy=remedy,
        )


def _rounding_noise(
    callee: Callee, feed: Sequence[Tensor], name: str, reference: npt.NDArray[Any], seeds: int = 2
) -> float:
    """Relative change of one output of the torch model when every layer's output carries FP32 rounding noise.

    Raises:
        StageError: the model changes by itself; its own chance must not pass for rounding.
    """
    again = _errors(callee.call(*feed)[name].numpy(), reference)[0]
    if again > ROUNDING_NOISE:
        raise StageError(
            f"the model is not deterministic in eval mode: the same input changes output {name!r} by {again:.2g} "
            "from one call to the next",
            where="model",
            remedy="draw no random numbers in eval mode (dropout with training=True, torch.rand)",
        )
    generator = torch.Generator()

    def noisy(module: nn.Module, args: object, output: object) -> object:
        if not isinstance(output, Tensor) or not output.is_floating_point():
            return output
        return output * (1 + ROUNDING_NOISE * torch.randn(output.shape, generator=generator))

    leaves = [m for m in callee.model.modules() if not any(True for _ in m.children()) or hasattr(m, "weight")]
    handles = [m.register_forward_hook(noisy) for m in leaves]
    try:
        worst = 0.0
        for seed in range(seeds):
            generator.manual_seed(seed)
            worst = max(worst, _errors(callee.call(*feed)[name].numpy(), reference)[0])
        return worst
    finally:
        for handle in handles:
            handle.remove()


def _other_sizes(label: str, size: int, inputs: Mapping[str, Tensor], axes: Axes) -> list[int]:
    """Sizes to try; an axis 0 counts samples, any other may need to stay a multiple of something."""
    if any(named.get(0) == label for tensor, named in axes.items() if tensor in inputs):
        return [s for s in (*BATCH_SIZES, 2 * size + 2) if s != size]
    candidates = [
        2 * size,
        size // 2 if size % 2 == 0 else 0,
        size + size // 2,
        size + 32,
        size + 1,
        size - 1,
        3 * size,
    ]
    return [s for s in dict.fromkeys(candidates) if s > 0 and s != size]


def _resized(tensor: Tensor, wanted: Mapping[int, int]) -> Tensor:
    """Repeat or cut real values to other sizes."""
    for axis, size in wanted.items():
        if tensor.shape[axis] != size:
            tensor = tensor.index_select(axis, torch.arange(size) % tensor.shape[axis])
    return tensor.contiguous()


def _errors(value: npt.NDArray[Any], reference: npt.NDArray[Any]) -> tuple[float, float]:
    """(relative error, largest difference). NaN and infinities count as equal only where both have them."""
    if reference.dtype.kind not in "fc":
        unequal = value != reference
        return (float(unequal.mean()) if unequal.size else 0.0), float(unequal.any())
    a, b = value.astype(np.float64), reference.astype(np.float64)
    special = ~(np.isfinite(a) & np.isfinite(b))
    if special.any():
        if not np.array_equal(a[special], b[special], equal_nan=True):
            return float("inf"), float("inf")
        a, b = np.where(special, 0.0, a), np.where(special, 0.0, b)
    difference = a - b
    if not difference.size:
        return 0.0, 0.0
    scale = float(np.linalg.norm(b.ravel()))
    error = float(np.linalg.norm(difference.ravel()))
    return (error / scale if scale > 0 else (0.0 if error == 0 else float("inf"))), float(np.abs(difference).max())


def _check_names(checks: Sequence[Check], axes: Axes, inputs: Mapping[str, Tensor]) -> None:
    for tensor, named in axes.items():
        if tensor in inputs:
            continue
        for axis, label in named.items():
            sizes = [c.shapes[tensor][axis] for c in checks]
            wanted = [c.sizes.get(label) for c in checks]
            if all(w is None for w in wanted):
                if len(set(sizes)) == 1 and len(checks) > 1:
                    raise StageError(
                        f"output {tensor!r}, axis {axis} is named {label!r}, but the model fixes it: "
                        f"it was {sizes[0]} at all {len(checks)} sizes tried",
                        where=f"dynamic_axes.{tensor}",
                        remedy="take this axis out of dynamic_axes",
                    )
                continue
            if sizes != wanted:
                where = next(i for i, (s, w) in enumerate(zip(sizes, wanted, strict=True)) if s != w)
                raise StageError(
                    f"output {tensor!r}, axis {axis} is named {label!r}, but it is {sizes[where]} "
                    f"when {label} is {wanted[where]}",
                    where=f"dynamic_axes.{tensor}",
                    remedy="the model fixes this axis or it counts something else: "
                    "take it out of dynamic_axes or give it another name",
                )

"""Optimisation profiles: min, opt and max shape of every dynamic input, from its named axes.

An engine with dynamic axes runs between min and max, and its tactics are chosen for opt. What the user says under
``shapes`` wins; then the batch axis is 1 / opt / 2*opt; any other dynamic axis takes its size from sample data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from deploychain.errors import ConfigError
from deploychain.settings import ShapeRange

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NetworkInput:
    """One network input. A dynamic axis is -1 in ``shape``; ``axes`` holds its name, or an empty string."""

    name: str
    shape: Shape
    axes: tuple[str, ...]

    @property
    def dynamic(self) -> tuple[int, ...]:
        return tuple(axis for axis, size in enumerate(self.shape) if size < 0)


@dataclass(frozen=True, slots=True)
class Profile:
    """Shapes of one input in one optimisation profile."""

    min: Shape
    opt: Shape
    max: Shape

    def to_dict(self) -> dict[str, list[int]]:
        return {"min": list(self.min), "opt": list(self.opt), "max": list(self.max)}

    @classmethod
    def of(cls, value: Mapping[str, Sequence[int]]) -> Profile:
        return cls(tuple(value["min"]), tuple(value["opt"]), tuple(value["max"]))


def make_profiles(
    inputs: Sequence[NetworkInput],
    shapes: Mapping[str, ShapeRange],
    opt_batch: int,
    examples: Mapping[str, Sequence[int]],
    axis_sizes: Mapping[str, int] | None = None,
) -> tuple[dict[str, Profile], tuple[str, ...]]:
    """The profile of every input that has a dynamic axis, and notes on what was assumed.

    Args:
        inputs: the network's inputs, as the parser reads them.
        shapes: what the user asked for, by input name.
        opt_batch: batch size of the opt shape where the user named none.
        examples: shape of real data for inputs, where known: the opt size of axes that are not the batch.
        axis_sizes: the same by axis name.

    Raises:
        ConfigError: ``shapes`` names an unknown input, has another rank, contradicts a fixed axis, or a dynamic axis
            is neither the batch, nor in ``shapes``, nor known from data.
    """
    by_name = {item.name: item for item in inputs}
    for name in shapes:
        if name not in by_name:
            near = get_close_matches(name, by_name, n=1, cutoff=0.0)
            raise ConfigError(
                f"the model has no input {name!r}",
                where=f"build.shapes.{name}",
                remedy=f"did you mean {near[0]!r}? Its inputs are: {', '.join(by_name)}" if near else "",
            )
    # A second input may carry the batch on another axis: the name tells.
    batch_names = {item.axes[0] for item in inputs if item.dynamic[:1] == (0,) and item.axes[0]}
    profiles: dict[str, Profile] = {}
    notes: list[str] = []
    for item in inputs:
        if item.name in shapes:
            made = _checked(item, shapes[item.name])
        else:
            sizes = _known_sizes(item, examples.get(item.name), axis_sizes or {})
            made = _default(item, batch_names, opt_batch, sizes, notes)
        if item.dynamic:
            profiles[item.name] = made
    return profiles, tuple(notes)


def _checked(item: NetworkInput, wanted: ShapeRange) -> Profile:
    where = f"build.shapes.{item.name}"
    if len(wanted.min) != len(item.shape):
        raise ConfigError(
            f"{len(wanted.min)} axes given, the input has {len(item.shape)}: {_show(item)}",
            where=where,
            remedy="give min, opt and max one size per axis, the batch included",
        )
    for axis, size in enumerate(item.shape):
        if size >= 0 and any(shape[axis] != size for shape in (wanted.min, wanted.opt, wanted.max)):
            raise ConfigError(
                f"axis {axis} is fixed to {size} in the model: {_show(item)}",
                where=where,
                remedy=f"write {size} there in min, opt and max, or export the axis as dynamic",
            )
    return Profile(wanted.min, wanted.opt, wanted.max)


def _default(
    item: NetworkInput,
    batch_names: set[str],
    opt_batch: int,
    sizes: Mapping[int, int],
    notes: list[str],
) -> Profile:
    low, opt, high = list(item.shape), list(item.shape), list(item.shape)
    for axis in item.dynamic:
        if axis == 0 or item.axes[axis] in batch_names:
            low[axis], opt[axis], high[axis] = 1, opt_batch, 2 * opt_batch
            continue
        if axis not in sizes:
            raise ConfigError(
                f"axis {axis} ({item.axes[axis] or 'unnamed'}) of input {item.name!r} is dynamic and its size is not "
                f"known: {_show(item)}",
                where=f"build.shapes.{item.name}",
                remedy=f"add `shapes: {{{item.name}: {{min: [...], opt: [...], max: [...]}}}}` to the build stage",
            )
        # Half to twice the size of real data: a network often cannot run at size 1 (strides, windows).
        size = sizes[axis]
        low[axis], opt[axis], high[axis] = max(1, size // 2), size, 2 * size
        notes.append(
            f"input {item.name!r} axis {axis} ({item.axes[axis] or 'unnamed'}): {low[axis]}/{size}/{high[axis]} from "
            f"the sample data; set build.shapes.{item.name} for other sizes"
        )
    return Profile(tuple(low), tuple(opt), tuple(high))


def _known_sizes(item: NetworkInput, example: Sequence[int] | None, axis_sizes: Mapping[str, int]) -> dict[int, int]:
    """Axis -> size in real data. An example of another rank says nothing."""
    if example is not None and len(example) == len(item.shape):
        return {axis: int(size) for axis, size in enumerate(example)}
    return {axis: int(axis_sizes[name]) for axis, name in enumerate(item.axes) if name in axis_sizes}


def _show(item: NetworkInput) -> str:
    sizes = (str(s) if s >= 0 else (name or "?") for s, name in zip(item.shape, item.axes, strict=True))
    return f"[{', '.join(sizes)}]"

"""Where quantisers go: found by running the model once, written down, applied again without data.

Every convolution and linear layer gets a weight quantiser and a quantiser at its input. Beside that, TensorRT wants
- the skip input of a residual addition quantised, else the convolution before the addition cannot pass INT8 on;
- one scale for all inputs of a concatenation that feeds a quantised layer.
Consumers of one tensor share one quantiser. Tensors are followed by identity while an example runs, so that this
holds across module borders; the additions and concatenations themselves are rewritten with torch.fx, one module body
at a time, its children kept as they are. A body that torch.fx cannot trace keeps its additions, and is named.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor, fx, nn

from deploychain.backends import qat_bodies as bodies
from deploychain.backends.qat_bodies import Key, Value, tensors_of
from deploychain.backends.qat_fold import Pair
from deploychain.backends.qat_quantizer import LAYERS, TRANSPOSED, refusal
from deploychain.errors import StageError

Q = TypeVar("Q", bound=nn.Module)
Run = Callable[[nn.Module], Sequence[Tensor]]


@dataclass(frozen=True, slots=True)
class Site:
    """One operand, inside a module's own forward, that is quantised before an addition or concatenation."""

    body: str  # module whose forward it is
    node: str  # torch.fx node of the addition or concatenation
    operand: str  # torch.fx node of the operand
    kind: str  # skip or concat
    quantizer: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Everything that turns a fresh model into the quantised one; plain strings, so that it can be kept as JSON."""

    folded: tuple[Pair, ...] = ()
    layers: Mapping[str, str] = field(default_factory=dict)  # layer -> quantiser at its input
    sites: tuple[Site, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)  # module -> why it stays unquantised
    notes: tuple[str, ...] = ()


def find_placement(model: nn.Module, run: Run, exclude: Sequence[str] = (), folded: Sequence[Pair] = ()) -> Placement:
    """Decide where quantisers go.

    Args:
        model: in eval mode, BatchNorms folded.
        run: runs the model on an example batch.
        exclude: fnmatch patterns of module names (a pattern that matches a module covers what is inside it).

    Raises:
        StageError: a pattern matches no module, or no layer is left to quantise.
    """
    excluded = _excluded(model, exclude)
    tracker = _Tracker(model, excluded)
    with torch.no_grad(), tracker.hooks():
        run(model)
        tracker.read_bodies()
    if not tracker.layers:
        raise StageError(
            "no layer is left to quantise",
            where="qat",
            remedy="remove patterns from `exclude`, or leave the qat stage out of the chain",
        )
    found = [*tracker.concats(), *tracker.skips()]
    sites = [s for s in found if not any(_inside(s.body, m) for m in excluded)]
    layers, named = _name_groups(tracker, sites)
    return Placement(tuple(folded), layers, named, dict(tracker.skipped), tuple(tracker.notes))


def place(
    model: nn.Module, placement: Placement, make: Callable[[], Q], convert: Callable[[nn.Module, Q], None]
) -> dict[str, Q]:
    """Put quantisers where a placement says, in place.

    Args:
        make: makes an activation quantiser.
        convert: gives a layer its weight quantiser and the given input quantiser.

    Returns:
        Activation quantisers by name; consumers of one tensor share theirs.

    Raises:
        StageError: the model lacks a module that the placement names, or its forward changed since.
    """
    quantizers: dict[str, Q] = {}
    for name, quantizer in placement.layers.items():
        try:
            layer = model.get_submodule(name)
        except AttributeError:
            raise StageError(
                "the model has no such layer any more", where=name, remedy="run the qat stage again with --force"
            ) from None
        convert(layer, quantizers.setdefault(quantizer, make()))
    for body in dict.fromkeys(s.body for s in placement.sites):
        module = model.get_submodule(body)
        attributes: dict[str, str] = {}  # quantiser -> attribute of this module
        edits: list[bodies.Edit] = []
        for site in (s for s in placement.sites if s.body == body):
            if site.quantizer not in attributes:
                taken = sum(a.startswith(site.kind) for a in attributes.values())
                attribute = f"{site.kind}_quantizer" + (f"_{taken}" if taken else "")
                attributes[site.quantizer] = attribute
                module.add_module(attribute, quantizers.setdefault(site.quantizer, make()))
            edits.append((site.node, site.operand, attributes[site.quantizer]))
        bodies.insert(module, edits, where=body)
    return quantizers


def _excluded(model: nn.Module, patterns: Sequence[str]) -> set[str]:
    names = [n for n, _ in model.named_modules() if n]
    found: set[str] = set()
    for pattern in patterns:
        matched = fnmatch.filter(names, pattern)
        if not matched:
            raise StageError(
                f"the pattern {pattern!r} matches no module",
                where="stages.qat.exclude",
                remedy=f"modules are {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}",
            )
        found.update(matched)
    return found


def _inside(name: str, module: str) -> bool:
    return name == module or name.startswith(module + ".")


class _Tracker:
    """Follows tensors by identity, and joins what must share a scale (union-find over tensors, layers and sites)."""

    def __init__(self, model: nn.Module, excluded: set[str]) -> None:
        self.model = model
        self.names = {m: n for n, m in model.named_modules()}
        self.layers: list[str] = []  # quantised layers in the order in which they run
        self._skips: list[Site] = []
        self.skipped: dict[str, str] = {}
        self.notes: list[str] = []
        self._excluded = excluded
        self._concats: list[tuple[list[Site], list[Key], Key]] = []
        self._parents: dict[Key, Key] = {}
        self._made: dict[Key, bool] = {}  # output of a quantised layer -> whether that is a convolution
        self._linear_skips: list[Site] = []
        self._products: list[str] = []
        self._alive: list[Any] = []  # an id stays unique only while its tensor lives
        self._calls: dict[nn.Module, tuple[tuple[Any, ...], dict[str, Any]]] = {}
        self._results: dict[nn.Module, list[Key]] = {}
        for module, name in self.names.items():
            if isinstance(module, LAYERS):
                self.skipped[name] = "its forward was not called (its weights may be used directly, as in attention)"

    def find(self, key: Key) -> Key:
        while (parent := self._parents.setdefault(key, key)) != key:
            key = parent
        return key

    def join(self, *keys: Key) -> None:
        for key in keys[1:]:
            self._parents[self.find(key)] = self.find(keys[0])

    def tensor(self, value: Tensor) -> Key:
        """A tensor as it is now: an in-place operation makes another one of it."""
        self._alive.append(value)
        return "tensor", id(value), value._version

    def hooks(self) -> _Hooks:
        handles: list[Any] = []
        for module, name in self.names.items():
            if isinstance(module, LAYERS):
                handles.append(module.register_forward_pre_hook(self._before_layer))
                handles.append(module.register_forward_hook(self._after_layer))
            elif any(True for _ in module.children()) and not type(module).__module__.startswith("torch.nn."):
                handles.append(module.register_forward_pre_hook(self._before_body, with_kwargs=True))
                handles.append(module.register_forward_hook(self._after_body))
            elif isinstance(module, nn.MultiheadAttention):
                self._products.append(name)
        return _Hooks(handles)

    def _before_layer(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        name = self.names[module]
        if name in self.layers:
            self.join(self.tensor(args[0]), ("layer", name))
            return
        if any(_inside(name, m) for m in self._excluded):
            self.skipped[name] = "excluded by the user"
        elif reason := refusal(module):
            self.skipped[name] = reason
        elif not (args and isinstance(args[0], Tensor) and args[0].dtype is torch.float32):
            self.skipped[name] = "its input is not an FP32 tensor"
        else:
            self.skipped.pop(name, None)
            self.layers.append(name)
            self.join(self.tensor(args[0]), ("layer", name))
            if isinstance(module, TRANSPOSED):
                self.notes.append(f"{name}: TensorRT-RTX builds a quantised ConvTranspose in FP32")

    def _after_layer(self, module: nn.Module, args: object, output: Tensor) -> None:
        if self.names[module] in self.layers:
            self._made[self.tensor(output)] = not isinstance(module, nn.Linear)

    def _before_body(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if module not in self._calls:
            self._calls[module] = (args, kwargs)

    def _after_body(self, module: nn.Module, args: object, output: Any) -> None:
        if module not in self._results:
            self._results[module] = [self.tensor(t) for t in tensors_of(output)]

    def read_bodies(self) -> None:
        """Find additions and concatenations in the forward of every module that ran and has children."""
        for module, (args, kwargs) in list(self._calls.items()):
            name = self.names[module]
            try:
                graph = bodies.trace(module)
                if any(map(bodies.is_product, graph.nodes)):
                    self._products.append(name)
                if not any(map(bodies.operands, graph.nodes)):
                    continue
                values, output = bodies.record(module, graph, args, kwargs, self.tensor)
            except Exception as error:  # torch.fx raises whatever the traced code raises
                if bodies.mentions_add(module):
                    why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
                    self.notes.append(f"{name or 'the model'}: additions in its forward stay unquantised: {why}")
                continue
            again = [self.tensor(t) for t in tensors_of(output)]
            for first, second in zip(self._results.get(module, []), again, strict=False):
                self.join(first, second)
            for node in graph.nodes:
                self._read_node(name, node, values)
        if self._products:
            more = f" and {len(self._products) - 1} more modules" if len(self._products) > 1 else ""
            where = self._products[0] or "the model"
            self.notes.append(f"{where}{more}: products of two activations (attention) stay unquantised")

    def _read_node(self, body: str, node: fx.Node, values: Mapping[str, Value]) -> None:
        operands = bodies.operands(node)
        found = [values.get(o.name) for o in operands]
        if not operands or not all(f is not None and f[2] is torch.float32 for f in found):
            return
        keys = [f[0] for f in found if f is not None]
        if bodies.is_add(node):
            quantised = [k in self._made for k in keys]
            if not any(quantised) or len({f[1] for f in found if f is not None}) > 1 or keys[0] == keys[1]:
                return
            # TensorRT fuses the addition with the layer that makes one operand; the other one is the skip.
            skip = 0 if quantised == [False, True] else 1
            site = Site(body, node.name, operands[skip].name, "skip", "")
            self.join(keys[skip], ("site", site))
            (self._skips if self._made[keys[1 - skip]] else self._linear_skips).append(site)
        elif (made := values.get(node.name)) is not None:
            sites = [Site(body, node.name, o.name, "concat", "") for o in dict.fromkeys(operands)]
            self._concats.append((sites, keys, made[0]))

    def skips(self) -> Iterator[Site]:
        """Skip operands: after a convolution always, after a linear layer where an INT8 copy exists anyway.

        A pre-norm transformer has none: LayerNorm reads the same tensor in floating point.
        """
        yield from self._skips
        feeds = {self.find(("layer", name)) for name in self.layers}
        yield from (site for site in self._linear_skips if self.find(("site", site)) in feeds)

    def concats(self) -> Iterator[Site]:
        """Operands of the concatenations that feed a quantised layer; they and that layer share one scale."""
        feeds = {self.find(("layer", name)) for name in self.layers}
        for sites, keys, made in self._concats:
            if self.find(made) in feeds:
                self.join(made, *keys)
                for site in sites:
                    self.join(made, ("site", site))
                    yield site


class _Hooks:
    def __init__(self, handles: Sequence[Any]) -> None:
        self._handles = handles

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()


def _name_groups(tracker: _Tracker, sites: Sequence[Site]) -> tuple[dict[str, str], tuple[Site, ...]]:
    """A quantiser is named after the first layer that it feeds, else after its site."""
    groups: dict[Key, str] = {}
    for name in tracker.layers:
        groups.setdefault(tracker.find(("layer", name)), f"{name}.input_quantizer")
    layers = {name: groups[tracker.find(("layer", name))] for name in tracker.layers}
    named: list[Site] = []
    for site in sites:
        own = f"{site.body}.{site.node}.{site.kind}_quantizer".lstrip(".")
        quantizer = groups.setdefault(tracker.find(("site", site)), own)
        named.append(Site(site.body, site.node, site.operand, site.kind, quantizer))
    return layers, tuple(named)

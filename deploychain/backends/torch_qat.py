"""Quantisation-aware training: from FP32 weights to a fake-quantised model, and back from its files.

fold BatchNorm -> place quantisers -> calibrate -> fine-tune in the training loop -> table of quantisers.
Two kinds of quantisers: deploychain's own (`qat_quantizer`) and NVIDIA ModelOpt's (`modelopt_qat`); placement,
calibration, files and export are the same for both.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from deploychain.backends.qat_bodies import tensors_of
from deploychain.backends.qat_calibrate import Observer, range_of
from deploychain.backends.qat_fold import fold, fold_batchnorms
from deploychain.backends.qat_placement import Placement, Site, find_placement, place
from deploychain.backends.qat_quantizer import QUANT_MAX, QUANT_MIN, FakeQuantizer, convert, weight_axis
from deploychain.backends.torch_data import call_model, move
from deploychain.errors import ArtifactError, StageError
from deploychain.records import to_json
from deploychain.task import Task

SCHEMA = "deploychain.quantizers/1"
EXAMPLE_SAMPLES = 4  # for placement: two or more, so that the batch shows in shapes
CHECK_SAMPLES = 128  # for the clipped share after fine-tuning


class Quantisers(Protocol):
    """What differs between the kinds of quantisers. A quantiser is a module that is called on a tensor."""

    name: Literal["native", "modelopt"]

    def place(self, model: nn.Module, placement: Placement) -> dict[str, nn.Module]:
        """Put quantisers in place; returns those of activations, by name."""
        ...

    def enable(self, quantizer: nn.Module, on: bool) -> None: ...

    def set_range(self, quantizer: nn.Module, amax: Tensor) -> None:
        """Set the largest representable magnitude: 0-d, or (channels,)."""
        ...

    def scale(self, quantizer: nn.Module) -> Tensor:
        """float32, 0-d or (channels,)."""
        ...

    def follow(self, model: nn.Module, ratios: Mapping[str, float]) -> Callable[[], None]:
        """Let ranges follow the data in training mode; returns what freezes the activation ranges."""
        ...


class NativeQuantisers:
    """`FakeQuantizer` modules."""

    name: Literal["native", "modelopt"] = "native"

    def place(self, model: nn.Module, placement: Placement) -> dict[str, nn.Module]:
        made: dict[str, FakeQuantizer] = place(model, placement, FakeQuantizer, convert)
        return {**made}

    def enable(self, quantizer: nn.Module, on: bool) -> None:
        cast(FakeQuantizer, quantizer).enabled = on

    def set_range(self, quantizer: nn.Module, amax: Tensor) -> None:
        cast(FakeQuantizer, quantizer).set_range(amax)

    def scale(self, quantizer: nn.Module) -> Tensor:
        return cast(FakeQuantizer, quantizer).scale

    def follow(self, model: nn.Module, ratios: Mapping[str, float]) -> Callable[[], None]:
        quantizers = [m for m in model.modules() if isinstance(m, FakeQuantizer)]
        for quantizer in quantizers:
            quantizer.follows = True
        for name, ratio in ratios.items():
            cast(FakeQuantizer, model.get_submodule(name)).ratio = ratio

        def freeze() -> None:
            for quantizer in quantizers:
                quantizer.follows = quantizer.axis is not None

        return freeze


@dataclass
class Quantised:
    """A model with quantisers, and how it came to be."""

    model: nn.Module
    quantisers: Quantisers
    placement: Placement
    activations: dict[str, nn.Module]  # activation quantisers by name
    unfolded: dict[str, str]  # BatchNorm -> why it stays
    clipped: dict[str, float]  # activation quantiser -> share of observed values beyond its range
    method: str = "none"

    def notes(self) -> list[str]:
        """What a user should know: what stayed unquantised or unfolded, and why."""
        lines = list(self.placement.notes)
        lines += [f"{name}: not quantised: {why}" for name, why in self.placement.skipped.items()]
        lines += [f"{name}: BatchNorm not folded: {why}" for name, why in self.unfolded.items()]
        return lines


def quantisers_of(backend: str) -> Quantisers:
    """The kind of quantisers that a backend name stands for.

    Raises:
        CapabilityError: modelopt is asked for and cannot be imported.
    """
    if backend == "native":
        return NativeQuantisers()
    from deploychain.backends.modelopt_qat import ModelOptQuantisers

    return ModelOptQuantisers()


def prepare(
    model: nn.Module, example: Any, exclude: Sequence[str] = (), quantisers: Quantisers | None = None
) -> Quantised:
    """Fold BatchNorms and put quantisers in, in place. Weight ranges are set; activation ranges are not.

    Args:
        model: FP32.
        example: a batch of two or more samples.
        exclude: fnmatch patterns of modules that stay unquantised.

    Raises:
        StageError: a pattern matches nothing, or nothing is left to quantise.
    """
    model.eval()
    quantisers = quantisers or NativeQuantisers()

    def run(m: nn.Module) -> list[Tensor]:
        try:
            return tensors_of(call_model(m, example))
        except Exception as error:  # the user's model raises what it likes
            raise StageError(
                f"the model fails on calibration data: {type(error).__name__}: {str(error).strip()[:200]}",
                where="qat",
                remedy="check forward and calibration_data()",
            ) from error

    folding = fold_batchnorms(model, run)
    placement = find_placement(model, run, exclude, folding.pairs)
    activations = quantisers.place(model, placement)
    return Quantised(model, quantisers, placement, activations, folding.kept, {})


def observe(quantised: Quantised, batches: Iterable[Any], device: torch.device | None = None) -> dict[str, Observer]:
    """Run batches of inputs with activation quantisers off, and collect what they would have quantised.

    Raises:
        StageError: an activation is not finite.
    """
    observers = {name: Observer(name) for name in quantised.activations}
    handles = []
    for name, quantizer in quantised.activations.items():
        quantised.quantisers.enable(quantizer, False)
        handles.append(quantizer.register_forward_pre_hook(_feeds(observers[name])))
    quantised.model.eval()
    try:
        with torch.no_grad():
            for inputs in batches:
                call_model(quantised.model, move(inputs, device) if device else inputs)
    finally:
        for handle in handles:
            handle.remove()
        for quantizer in quantised.activations.values():
            quantised.quantisers.enable(quantizer, True)
    return observers


def _feeds(observer: Observer) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
    def hook(module: nn.Module, args: tuple[Tensor, ...]) -> None:
        observer.update(args[0].detach())

    return hook


def calibrate(
    quantised: Quantised,
    batches: Iterable[Any],
    method: str = "percentile",
    percentile: float = 99.99,
    device: torch.device | None = None,
) -> dict[str, float]:
    """Set activation ranges from data.

    Returns:
        Activation quantiser -> range / mean maximum of a batch.

    Raises:
        StageError: a quantiser saw no data, or values that are not finite.
    """
    observers = observe(quantised, batches, device)
    ratios: dict[str, float] = {}
    for name, observer in observers.items():
        amax = range_of(observer, method, percentile)
        quantised.quantisers.set_range(quantised.activations[name], torch.tensor(amax))
        usual = observer.mean_batch_maximum()
        ratios[name] = amax / usual if usual > 0 else 1.0
    quantised.method = method if method != "percentile" else f"percentile {percentile:g}"
    _measure_clipping(quantised, observers)
    return ratios


def measure_clipping(quantised: Quantised, batches: Iterable[Any], device: torch.device | None = None) -> None:
    """Measure the clipped shares again, after fine-tuning moved weights and ranges."""
    _measure_clipping(quantised, observe(quantised, batches, device))


def _measure_clipping(quantised: Quantised, observers: Mapping[str, Observer]) -> None:
    for name, observer in observers.items():
        # Half a step beyond the last level still rounds to it.
        last = float(quantised.quantisers.scale(quantised.activations[name])) * (QUANT_MAX + 0.5)
        quantised.clipped[name] = observer.clipped_share(last)


def follow_until(
    quantised: Quantised, ratios: Mapping[str, float], fraction: float
) -> tuple[Callable[[int, int], None], Callable[[], None]]:
    """Let ranges follow the data for a part of the fine-tuning; weight ranges follow the weights to its end.

    Args:
        ratios: what `calibrate` returned.
        fraction: part of the steps after which activation ranges stay as they are.

    Returns:
        ``after_step(done, total)`` for the training loop, and what ends it all.
    """
    names = {m: n for n, m in quantised.model.named_modules()}
    by_module = {names[quantised.activations[q]]: ratio for q, ratio in ratios.items()}
    freeze = quantised.quantisers.follow(quantised.model, by_module)
    if fraction == 0:
        freeze()

    def after_step(done: int, total: int) -> None:
        if done >= fraction * total:
            freeze()

    def end() -> None:
        freeze()
        for quantizer, weight in _weights(quantised).values():
            if isinstance(quantizer, FakeQuantizer):
                quantizer.follow(weight)
                quantizer.follows = False

    return after_step, end


def _weights(quantised: Quantised) -> dict[str, tuple[nn.Module, Tensor]]:
    """Layer -> its weight quantiser and weight."""
    layers = {name: quantised.model.get_submodule(name) for name in quantised.placement.layers}
    return {n: (cast(nn.Module, m.weight_quantizer), cast(Tensor, m.weight).detach()) for n, m in layers.items()}


def table(quantised: Quantised) -> list[dict[str, Any]]:
    """One row per quantiser: name, module, kind, axis, scale, range, clipped share, how its range was found."""
    rows: list[dict[str, Any]] = []
    scale_of = quantised.quantisers.scale
    for name, quantizer in quantised.activations.items():
        serves = [layer for layer, q in quantised.placement.layers.items() if q == name]
        sites = [s for s in quantised.placement.sites if s.quantizer == name]
        rows.append(
            _row(name, "activation", None, scale_of(quantizer), quantised.clipped.get(name), quantised.method)
            | {
                "module": serves[0] if serves else sites[0].body,
                "feeds": serves + [f"{s.kind} of {s.body or 'the model'} ({s.node})" for s in sites],
            }
        )
    for layer, (quantizer, weight) in _weights(quantised).items():
        axis = weight_axis(quantised.model.get_submodule(layer))
        scale = scale_of(quantizer)
        shape = [-1 if d == axis else 1 for d in range(weight.ndim)]
        beyond = weight.abs() > (scale * (QUANT_MAX + 0.5)).reshape(shape)
        clipped = float(beyond.double().mean())
        rows.append(
            _row(f"{layer}.weight_quantizer", "weight", axis, scale, clipped, "max")
            | {"module": layer, "feeds": [layer]}
        )
    return rows


def _row(name: str, kind: str, axis: int | None, scale: Tensor, clipped: float | None, method: str) -> dict[str, Any]:
    values = [float(v) for v in scale.detach().cpu().reshape(-1)]
    return {
        "name": name,
        "kind": kind,
        "axis": axis,
        "scale": values,
        "zero_point": 0,
        "range": [QUANT_MIN * max(values), QUANT_MAX * max(values)],
        "clipped_share": clipped,
        "calibration": method,
    }


def save(quantised: Quantised, weights: Path, quantizers: Path) -> None:
    """Write the state (safetensors) and the table with the placement (JSON).

    Raises:
        StageError: a scale is not finite and positive, or a weight is not finite.
    """
    rows = table(quantised)
    for row in rows:
        if not all(math.isfinite(s) and s > 0 for s in row["scale"]):
            raise StageError("a scale is not finite and positive", where=row["name"], remedy="lower qat.lr")
    state: dict[str, Tensor] = {}
    for name, tensor in quantised.model.state_dict().items():
        if not isinstance(tensor, Tensor):
            continue  # extra state of a module; what matters of it is in the placement
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise StageError("not finite after fine-tuning", where=name, remedy="lower qat.lr")
        state[name] = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
    document = {
        "schema": SCHEMA,
        "backend": quantised.quantisers.name,
        "calibration": quantised.method,
        "quantizers": rows,
        "placement": dataclasses.asdict(quantised.placement),
        "unfolded": quantised.unfolded,
    }
    text = json.dumps(to_json(document), indent=1, allow_nan=False) + "\n"
    try:
        save_file(state, str(weights), metadata={"format": "pt"})
        quantizers.write_text(text, encoding="utf-8")
    except (OSError, SafetensorError) as error:
        raise StageError(
            f"cannot write the quantised model: {getattr(error, 'strerror', None) or error}",
            where=str(weights.parent),
            remedy="free some disk space",
        ) from None


def load_quantised(task: Task, qat_weights: Path, quantizers: Path) -> nn.Module:
    """Rebuild the fake-quantised model: the task's model, the recorded placement, the stored state.

    Returns:
        The model in eval mode, on the CPU; its outputs are bit-equal to those of the model that was saved.

    Raises:
        ArtifactError: a file is damaged, or the task's model is no longer the one that was quantised.
    """
    document = _read(quantizers)
    placement = _placement(document["placement"], quantizers)
    quantisers = quantisers_of(document["backend"])
    model = task.model().eval()
    try:
        state = load_file(str(qat_weights))
    except (OSError, SafetensorError) as error:
        raise ArtifactError(f"not readable safetensors: {error}", where=str(qat_weights)) from None
    changed = ArtifactError(
        "the task's model is not the one that was quantised",
        where=str(qat_weights),
        remedy="run the qat stage again with --force",
    )
    try:
        for pair in placement.folded:
            fold(model, pair)
        activations = quantisers.place(model, placement)
        modules = dict(model.named_modules(remove_duplicate=False)) | activations
        for row in document["quantizers"]:
            shape = torch.tensor(row["scale"]) if row["axis"] is not None else torch.tensor(row["scale"][0])
            quantisers.set_range(modules[row["name"]], shape * QUANT_MAX)
        wanted = model.state_dict()
        tensors = {n: t for n, t in wanted.items() if isinstance(t, Tensor)}
        if set(tensors) != set(state) or any(state[n].shape != t.shape for n, t in tensors.items()):
            raise changed
        model.load_state_dict(state, strict=len(tensors) == len(wanted))
    except (StageError, AttributeError, KeyError, RuntimeError) as error:
        if error is changed:
            raise
        changed.message += f": {error}"
        raise changed from error
    return model.eval()


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArtifactError(f"not a readable quantiser table: {error}", where=str(path)) from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ArtifactError(f"not a {SCHEMA} document", where=str(path), remedy="run the qat stage again with --force")
    return document


def _placement(raw: Mapping[str, Any], path: Path) -> Placement:
    try:
        return Placement(
            folded=tuple((str(a), str(b)) for a, b in raw["folded"]),
            layers=dict(raw["layers"]),
            sites=tuple(Site(**site) for site in raw["sites"]),
            skipped=dict(raw["skipped"]),
            notes=tuple(raw["notes"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"the placement is damaged: {error}", where=str(path)) from None

"""Export of a torch model to an ONNX file at one opset, with named dynamic axes.

The TorchScript exporter is used: asked for opset 17, the dynamo exporter leaves files at 18 or writes invalid ones.
What it writes is not believed: `onnx_proof.prove` runs the file before it gets its name.
"""

from __future__ import annotations

import contextlib
import logging
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import onnx
import torch
from torch import Tensor, nn

from deploychain.backends import onnx_graph
from deploychain.backends.onnx_proof import Callee, Proof, prove, settle_dimensions
from deploychain.backends.torch_data import call_model, input_names, inputs_to_dict, outputs_to_dict
from deploychain.engine.origin import torch_module
from deploychain.errors import ConfigError, StageError

BATCH_AXIS = "batch"
Axes = Mapping[str, Mapping[int, str]]
# Puts flat tensors back into the structure that the model takes: one tensor, a tuple, or a dict.
Rebuild = Callable[[Sequence[Tensor]], Any]

# What the TorchScript exporter says -> what to do about it.
_REMEDIES: tuple[tuple[str, str], ...] = (
    (
        r"rms_norm",
        "F.rms_norm has no export at opset 17: write it as x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w",
    ),
    (
        r"antialias|upsample_bi(linear|cubic)2d_aa|_upsample_\w+_aa",
        "antialiased interpolate has no export at opset 17: use antialias=False, or resize before the model",
    ),
    (
        r"affine_grid",
        "affine_grid needs opset 20: compute the grid with torch.linspace and a matmul, or set export.opset: 20",
    ),
    (r"col2im|fold", "F.fold needs opset 18: use pixel_shuffle or a transposed convolution, or set export.opset: 18"),
    (
        r"bitwise|__and__|__or__|__xor__",
        "bitwise operators on integers need opset 18: use torch.logical_and/or on booleans, or arithmetic",
    ),
    (
        r"fake_quantize.*quant_min|quant_min|\(-128, ?127\)",
        "only the ranges (-128, 127), (0, 127) and (0, 255) can be exported",
    ),
    (r"grid_sampler", "grid_sample needs opset 16 or later"),
    (r"scaled_dot_product_attention", "use 3-D or 4-D query, key and value, and no enable_gqa"),
    (
        r"output_size|adaptive_\w*pool",
        "an adaptive pool whose output size does not divide its input size cannot be exported: use mean(dim=(2, 3)) "
        "or a pool with a fixed kernel",
    ),
    (
        r"unfold|Unfold",
        "unfold needs fixed sizes: use a convolution or pixel_unshuffle, or take the axis out of dynamic_axes",
    ),
    (
        r"opset version (\d+).*is not supported|UnsupportedOperator",
        "rewrite the operation with operators of opset 17, or raise export.opset (TensorRT 10.3 parses up to 20)",
    ),
)


@dataclass(frozen=True, slots=True)
class Export:
    """A proved ONNX file."""

    path: Path
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dynamic_axes: Axes
    nodes: Mapping[str, str]  # node name -> torch module; "" is the model itself
    proof: Proof
    warnings: tuple[str, ...]


def export(
    model: nn.Module,
    example: Any,
    path: Path,
    *,
    opset: int = 17,
    names: Sequence[str] = (),
    output_names: Sequence[str] = (),
    dynamic_axes: Axes | None = None,
    tolerance: float = 1e-3,
) -> Export:
    """Export, clean, prove, and only then give the file its name.

    Args:
        model: on the CPU; it is put into eval mode.
        example: two or more samples: a tensor, a tuple of tensors, or a dict of tensors.
        path: where the file goes; weights over 2 GB go to ``<name>.data`` beside it.
        names: ONNX input names; default: the argument names of the model's forward.
        output_names: default: the keys of a dict output, else ``output``, ``output_1``, ...
        dynamic_axes: tensor -> {axis: name}; None: axis 0 of every tensor is ``batch``; {}: every axis fixed.
        tolerance: largest relative error between torch and onnxruntime, ``||a - b|| / ||b||``.

    Raises:
        ConfigError: names or axes that the model does not have.
        StageError: the exporter cannot do it, or the file does not do what the model does; tensor, axis or node named.
    """
    model = model.cpu().eval()
    inputs, tensors, rebuild = _inputs(model, example, names)
    with torch.no_grad():
        outputs = _run_once(model, rebuild, tensors, tuple(output_names))
    results = tuple(outputs)
    axes = _axes(dynamic_axes, dict(zip(inputs, tensors, strict=True)), outputs)
    tensors = [_two_samples(tensor, axes.get(name, {})) for name, tensor in zip(inputs, tensors, strict=True)]

    def call(*given: Tensor) -> dict[str, Tensor]:
        with torch.no_grad():
            return outputs_to_dict(call_model(model, rebuild(given)), tuple(output_names))

    folder = Path(tempfile.mkdtemp(prefix=".export-", dir=path.parent))
    try:
        raw = folder / "raw" / path.name
        raw.parent.mkdir()
        said = _export(model, rebuild, tensors, tuple(output_names), raw, opset, inputs, results, axes)
        graph = onnx_graph.prepare(onnx_graph.load(raw))
        del graph.graph.value_info[:]
        merge_quantizers(graph.graph)
        shutil.rmtree(raw.parent)
        graph.producer_name = "deploychain (torch.onnx)"
        file = folder / path.name
        onnx_graph.save(graph, file)
        callee = Callee(call, dict(zip(inputs, tensors, strict=True)), model)
        proof = prove(file, callee, opset=opset, dynamic_axes=axes, tolerance=tolerance)
        if settle_dimensions(graph, proof):
            onnx_graph.save(graph, file)
            onnx_graph.check(file, opset)
        kept = tuple(v.name for v in graph.graph.input)
        said += [f"input {n!r} is not used by the model: the file does not have it" for n in inputs if n not in kept]
        for part in sorted(folder.iterdir(), key=lambda p: p.suffix == ".onnx"):  # the weights before the graph
            part.replace(path.parent / part.name)
    except OSError as error:
        raise StageError(
            f"cannot write the model: {error.strerror}", where=str(path), remedy="free some disk space"
        ) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Export(path, opset, kept, results, axes, node_modules(graph, model), proof, tuple(said))


def node_modules(graph: onnx.ModelProto, model: nn.Module) -> dict[str, str]:
    """Node name -> torch module, for the nodes whose name says it.

    The exporter numbers the calls of a module that runs several times: ``act_1`` is the second call of ``act``. A
    quantiser that several modules share is called by only one of its names; its node belongs to where it is called.
    """
    known = {name for name, _ in model.named_modules(remove_duplicate=False)}
    found: dict[str, str] = {}
    for node in graph.graph.node:
        module = torch_module(node.name)
        if module is None:
            continue
        while module not in known:
            plain = re.sub(r"_\d+$", "", module)
            module = plain if plain in known else module.rpartition(".")[0]
        found[node.name] = module
    return found


def merge_quantizers(graph: onnx.GraphProto) -> int:
    """Merge Q/DQ nodes that compute the same: consumers of one tensor then read one INT8 tensor.

    Returns:
        How many nodes were removed.
    """
    first: dict[tuple[str, ...], str] = {}
    rename: dict[str, str] = {}
    outputs = {v.name for v in graph.output}
    merged = 0
    for node in list(graph.node):
        for index, name in enumerate(node.input):
            if name in rename:
                node.input[index] = rename[name]
        if node.op_type not in ("QuantizeLinear", "DequantizeLinear") or node.output[0] in outputs:
            continue
        axis = "".join(str(a.i) for a in node.attribute if a.name == "axis")
        same = first.setdefault((node.op_type, axis, *node.input), node.output[0])
        if same != node.output[0]:
            rename[node.output[0]] = same
            graph.node.remove(node)
            merged += 1
    return merged


def _export(
    model: nn.Module,
    rebuild: Rebuild,
    tensors: Sequence[Tensor],
    output_names: Sequence[str],
    path: Path,
    opset: int,
    inputs: Sequence[str],
    outputs: Sequence[str],
    axes: Axes,
) -> list[str]:
    """Run the exporter; return what it warned about and a user may want to know."""
    with warnings.catch_warnings(record=True) as caught, _quiet_logging(), _flat_forward(model, rebuild, output_names):
        warnings.simplefilter("always")
        try:
            torch.onnx.export(
                model,
                tuple(tensors),
                str(path),
                dynamo=False,
                opset_version=opset,
                input_names=list(inputs),
                output_names=list(outputs),
                dynamic_axes={tensor: dict(named) for tensor, named in axes.items()},
            )
        except OSError:
            raise
        except Exception as error:  # the exporter raises what the traced code raises, and its own classes
            raise StageError(
                f"the exporter failed at opset {opset}: {_first_line(error)}",
                where="export",
                remedy=_remedy(str(error)),
            ) from error
    if not path.is_file():
        raise StageError("the exporter wrote no file", where="export")
    notes = [
        f"{Path(w.filename).name}:{w.lineno}: a Python value computed from a tensor becomes a constant of the graph"
        for w in caught
        if w.category.__name__ == "TracerWarning" and "site-packages" not in w.filename
    ]
    return list(dict.fromkeys(notes))


def _first_line(error: object) -> str:
    text = str(error).strip()
    return " ".join(text.splitlines()[0].split())[:400] if text else type(error).__name__


def _remedy(text: str) -> str:
    for pattern, remedy in _REMEDIES:
        if re.search(pattern, text):
            return remedy
    return "see docs/export.md for what cannot be exported at opset 17"


@contextlib.contextmanager
def _quiet_logging() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.onnx._internal.torchscript_exporter")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextlib.contextmanager
def _flat_forward(model: nn.Module, rebuild: Rebuild, output_names: Sequence[str]) -> Iterator[None]:
    """Let the model take and return plain tensors while it is traced.

    A wrapper module would put its own name into every node's path; replacing forward on the instance does not.
    """
    forward = model.forward
    own = "forward" in model.__dict__

    def flat(*tensors: Tensor) -> tuple[Tensor, ...]:
        outputs = call_model(cast(nn.Module, forward), rebuild(tensors))  # any callable does
        return tuple(outputs_to_dict(outputs, output_names).values())

    model.forward = flat
    try:
        yield
    finally:
        if own:
            model.forward = forward
        else:
            del model.forward


def _inputs(model: nn.Module, example: Any, asked: Sequence[str]) -> tuple[tuple[str, ...], list[Tensor], Rebuild]:
    """ONNX input names, the tensors in that order, and how the model takes them."""
    own = input_names(model, example)
    values = inputs_to_dict(example, own)
    for name, value in values.items():
        if not isinstance(value, Tensor):
            raise StageError(
                f"the model's input {name!r} is a {type(value).__name__}, not a tensor",
                where="export",
                remedy="only tensors can be inputs of an ONNX model",
            )
    if asked and len(asked) != len(own):
        raise ConfigError(
            f"{len(asked)} input names for {len(own)} inputs ({', '.join(own)})",
            where="stages.export.input_names",
            remedy="name every input, in order, or none",
        )

    def rebuild(tensors: Sequence[Tensor]) -> Any:
        if isinstance(example, Mapping):
            return dict(zip(own, tensors, strict=True))
        return tensors[0] if isinstance(example, Tensor) else tuple(tensors)

    return tuple(asked or own), [t.detach().clone() for t in values.values()], rebuild


def _two_samples(tensor: Tensor, named: Mapping[int, str]) -> Tensor:
    """A dynamic axis of size 1 is traced at 2: at size 1, broadcasting hides where a size is baked in."""
    for axis in named:
        if tensor.shape[axis] == 1:
            tensor = tensor.repeat_interleave(2, axis)
    return tensor


def _run_once(model: nn.Module, rebuild: Rebuild, tensors: Sequence[Tensor], asked: Sequence[str]) -> dict[str, Tensor]:
    try:
        raw = call_model(model, rebuild(tensors))
    except Exception as error:  # the user's model raises what it likes
        raise StageError(
            f"the model fails on its example: {type(error).__name__}: {_first_line(error)}",
            where="export",
            remedy="check forward, and example() or the first test samples",
        ) from error
    outputs = outputs_to_dict(raw, ())
    if asked and len(asked) != len(outputs):
        raise ConfigError(
            f"{len(asked)} output names for {len(outputs)} outputs ({', '.join(outputs)})",
            where="stages.export.output_names",
            remedy="name every output, in order, or none",
        )
    return outputs_to_dict(raw, asked)


def _axes(asked: Axes | None, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> Axes:
    """Dynamic axes by tensor, with non-negative axes.

    Raises:
        ConfigError: a tensor or an axis that does not exist (the exporter would ignore it silently).
    """
    tensors = {**inputs, **outputs}
    if both := set(inputs) & set(outputs):
        raise ConfigError(
            f"input and output share the name {sorted(both)[0]!r}",
            where="stages.export",
            remedy="set input_names or output_names",
        )
    if asked is None:
        return {name: {0: BATCH_AXIS} for name, tensor in tensors.items() if tensor.ndim}
    found: dict[str, dict[int, str]] = {}
    for name, named in asked.items():
        if name not in tensors:
            raise ConfigError(
                f"there is no tensor {name!r}",
                where="stages.export.dynamic_axes",
                remedy=f"inputs: {', '.join(inputs)}; outputs: {', '.join(outputs)}",
            )
        dims = tensors[name].ndim
        for axis, label in named.items():
            if not -dims <= axis < dims:
                raise ConfigError(
                    f"{name!r} has {dims} axes, there is no axis {axis}",
                    where=f"stages.export.dynamic_axes.{name}",
                )
            found.setdefault(name, {})[axis % dims] = label
    return found

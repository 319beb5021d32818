"""Weights in and out: checkpoints of any origin, safetensors, and the task's model filled with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import nn

from deploychain.backends.torch_checkpoint import CHECKPOINT_FORMAT, load_state, write_atomically
from deploychain.errors import ArtifactError, StageError
from deploychain.task import Task

State = dict[str, torch.Tensor]

_WRAPPERS = ("model", "state_dict", "model_state_dict", "net", "weights")  # keys under which others keep the weights
_PREFIXES = ("module.", "_orig_mod.")  # DistributedDataParallel, torch.compile
_OUTER = ("model.", "net.", "network.")  # an attribute of somebody's training class


@dataclass(frozen=True)
class Checkpoint:
    """Weights out of a file, with names as the bare module has them."""

    state: State
    origin: str  # what the file turned out to be
    notes: tuple[str, ...] = ()


def new_model(task: Task) -> nn.Module:
    """What the task's ``model()`` makes.

    Raises:
        StageError: it is no module.
    """
    model: object = task.model()
    if not isinstance(model, nn.Module):
        raise StageError(
            f"model() returned {type(model).__name__}", where=type(task).__name__, remedy="return a torch.nn.Module"
        )
    return model


def trainable_model(task: Task) -> nn.Module:
    """A new model whose parameters can be trained under autocast.

    Raises:
        StageError: it is no module, has nothing to train, or its parameters are not FP32.
    """
    model = new_model(task)
    trained = {name: p.dtype for name, p in model.named_parameters() if p.requires_grad}
    if not trained:
        raise StageError(
            "the model has no parameter with requires_grad: there is nothing to train",
            where=type(task).__name__,
            remedy="unfreeze some of it, or leave train out and start from its weights",
        )
    other = [name for name, dtype in trained.items() if dtype != torch.float32]
    if other:
        raise StageError(
            f"{some(other)} are {str(trained[other[0]])[6:]}: training keeps FP32 masters",
            where=type(task).__name__,
            remedy="make the model in FP32; autocast makes the half copies",
        )
    return model


def build_model(task: Task, weights: Path | None = None) -> nn.Module:
    """The task's model in FP32 and eval mode, filled with a safetensors file.

    Raises:
        ArtifactError: the file is damaged, or its names or shapes are not the model's.
    """
    model = new_model(task)
    if weights is not None:
        state = read_safetensors(weights)
        check_against(state, model.state_dict(), weights)
        model.load_state_dict(state)
    return model.float().eval()


def model_from_checkpoint(task: Task, path: Path) -> nn.Module:
    """The task's model in FP32 and eval mode, filled with what `read_checkpoint` finds.

    Raises:
        ArtifactError: unreadable, or its names or shapes are not the model's.
    """
    model = new_model(task)
    expected = model.state_dict()
    state = read_checkpoint(path, expected).state
    check_against(state, expected, path)
    model.load_state_dict(state)
    return model.float().eval()


def read_safetensors(path: Path) -> State:
    """All tensors of a safetensors file.

    Raises:
        ArtifactError: missing, damaged, or not safetensors.
    """
    try:
        return dict(load_file(path))
    except FileNotFoundError:
        raise ArtifactError("the weights file does not exist", where=str(path), remedy="check the path") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise ArtifactError(
            f"not a readable safetensors file: {' '.join(str(error).split())[:120]}",
            where=str(path),
            remedy="save or download it again",
        ) from None


def write_safetensors(path: Path, state: Mapping[str, torch.Tensor]) -> None:
    """Write tensors whole or not at all. Tensors that share memory are written once under each name.

    Equal tensors give equal bytes: safetensors writes two or more metadata entries in a random order, so there is one.
    """
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in state.items()}
    write_atomically(path, save(plain, {"format": "pt"}))


def read_checkpoint(path: Path, expected: Mapping[str, Any] | None = None) -> Checkpoint:
    """Read the weights of a checkpoint: deploychain's, a plain state dict, or one kept under a usual key.

    Prefixes of DDP (``module.``) and torch.compile (``_orig_mod.``) are removed; that of an enclosing class
    (``model.``) where only that makes the names those of ``expected``. Nothing in the file is executed.

    Raises:
        ArtifactError: unreadable, holding pickled objects, or without weights.
    """
    if path.suffix == ".safetensors":
        return Checkpoint(_clean(read_safetensors(path), expected), "safetensors")
    raw = load_state(path)
    if not isinstance(raw, Mapping):
        raise ArtifactError(
            f"the checkpoint holds {type(raw).__name__}, not weights", where=str(path), remedy="save model.state_dict()"
        )
    if raw.get("format") == CHECKPOINT_FORMAT:
        average = raw.get("ema")
        origin = f"deploychain checkpoint after epoch {raw.get('epoch')}" + (", weight average" if average else "")
        return Checkpoint(_tensors(average or raw["model"]), origin)
    notes = []
    state, origin = raw, "state dict"
    for key in _WRAPPERS:
        if isinstance(raw.get(key), Mapping) and _tensors(raw[key]):
            state, origin = raw[key], f"state dict under {key!r}"
            others = [k for k in raw if "ema" in str(k).lower() and isinstance(raw[k], Mapping)]
            if others:
                notes.append(f"{path.name} also holds {', '.join(map(repr, others))}, which is not used")
            break
    tensors = _tensors(state)
    if not tensors:
        keys = ", ".join(repr(k) for k in list(raw)[:6])
        raise ArtifactError(
            f"the checkpoint has no weights (top-level keys: {keys or 'none'})",
            where=str(path),
            remedy="save model.state_dict(), or {'model': model.state_dict()}",
        )
    return Checkpoint(_clean(tensors, expected), origin, tuple(notes))


def _tensors(state: Mapping[Any, Any]) -> State:
    return {str(k): v for k, v in state.items() if isinstance(v, torch.Tensor)}


def _clean(state: State, expected: Mapping[str, Any] | None) -> State:
    for _ in range(2):  # DDP around compile, or the other way round
        for prefix in _PREFIXES:
            if state and all(name.startswith(prefix) for name in state):
                state = {name.removeprefix(prefix): value for name, value in state.items()}
    state = {name.replace("._orig_mod.", "."): value for name, value in state.items()}
    for prefix in _OUTER:
        inner = {n.removeprefix(prefix): v for n, v in state.items() if n.startswith(prefix)}
        if expected and not expected.keys() <= state.keys() and expected.keys() <= inner.keys():
            return inner
    return state


def check_against(state: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor], path: Path) -> None:
    """Compare names and shapes with those of the task's model.

    Raises:
        ArtifactError: they differ; the first names are given.
    """
    missing = [n for n in expected if n not in state]
    extra = [n for n in state if n not in expected]
    shapes = [
        f"{n} is {list(state[n].shape)}, the model has {list(expected[n].shape)}"
        for n in expected
        if n in state and state[n].shape != expected[n].shape
    ]
    shapes += [
        f"{n} is {str(state[n].dtype)[6:]}, the model has {str(expected[n].dtype)[6:]}"
        for n in expected
        if n in state and state[n].is_floating_point() != expected[n].is_floating_point()
    ]
    found = []
    if missing:
        found.append(f"missing {some(missing)}")
    if extra:
        found.append(f"unknown {some(extra)}")
    if shapes:
        found.append(some(shapes))
    if found:
        raise ArtifactError(
            f"the weights are not those of the task's model: {'; '.join(found)}",
            where=str(path),
            remedy="make model() return the architecture that was trained",
        )


def require_fp32(path: Path) -> Path:
    """A chain may start from a safetensors file: it must hold what the weights stage would have let through.

    Raises:
        ArtifactError: half-precision tensors, or values that are not finite.
    """
    state = read_safetensors(path)
    half = [n for n, v in state.items() if v.dtype in (torch.float16, torch.bfloat16)]
    if half:
        raise ArtifactError(
            f"{some(half)} are {str(state[half[0]].dtype)[6:]}: no FP32 weights",
            where=str(path),
            remedy="give the FP32 file, or `start: {checkpoint: ...}`: the weights stage then converts and warns",
        )
    bad = [n for n, v in state.items() if v.is_floating_point() and not bool(torch.isfinite(v).all())]
    if bad:
        raise ArtifactError(
            f"the weights hold NaN or infinite values: {some(bad)}",
            where=str(path),
            remedy="take an earlier checkpoint, or train again with a lower lr or clip_norm",
        )
    return path


def some(names: Sequence[str], most: int = 3) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

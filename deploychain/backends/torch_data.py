"""The task's data as batches: loaders, devices, and the forms that inputs and outputs may take."""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, default_collate

from deploychain.errors import StageError
from deploychain.task import Task

Split = Literal["train", "test", "calibration"]
Array = npt.NDArray[Any]


_HERE = str(Path(__file__).parent)


class ShardSampler(Sampler[int]):
    """The order of one epoch: a function of (seed, epoch) only, cut into equal shards for several processes.

    Every process sees the same permutation and takes every ``world``-th index of it; the tail wraps around so that
    all have equally many (a process with fewer batches would leave the others waiting in the all-reduce).
    """

    def __init__(self, length: int, seed: int, shuffle: bool, rank: int = 0, world: int = 1) -> None:
        self.length, self.seed, self.shuffle, self.rank, self.world = length, seed, shuffle, rank, world
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return -(-self.length // self.world)

    def __iter__(self) -> Iterator[int]:
        if self.shuffle:
            generator = torch.Generator().manual_seed(mix_seed(self.seed, self.epoch))
            order = torch.randperm(self.length, generator=generator).tolist()
        else:
            order = list(range(self.length))
        padded = len(self) * self.world
        order = (order * -(-padded // max(self.length, 1)))[:padded]
        return iter(order[self.rank :: self.world])


class Loader(DataLoader[Any]):
    """torch's loader; an error in one of its worker processes comes as one line, with its place in the user's code."""

    def __iter__(self) -> Any:
        try:
            yield from super().__iter__()
        except Exception as error:
            if "in DataLoader worker process" not in str(error):
                raise
            raise _error_of_worker(str(error)) from error


def _error_of_worker(text: str) -> StageError:
    """torch hands over the worker's traceback as text: its last line is the error, its frames the place."""
    last = text.strip().splitlines()[-1]
    own = f"{StageError.__module__}.{StageError.__name__}: "
    if last.startswith(own):
        return StageError(last.removeprefix(own), where="data loader worker")
    frames = re.findall(r'File "([^"]+)", line (\d+)', text)
    inside = [f"{file}:{line}" for file, line in frames if "site-packages" not in file and not file.startswith(_HERE)]
    return StageError(
        f"the dataset raised {last[:300]}",
        where=inside[-1] if inside else "data loader worker",
        remedy="workers: 0 shows the whole traceback with --debug",
    )


def mix_seed(*parts: int) -> int:
    """One 63-bit seed out of several numbers, so that (0, 1) and (1, 0) do not meet."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))


def seed_everything(*parts: int) -> None:
    """Seed Python, NumPy and torch (CPU and every GPU)."""
    seed = mix_seed(*parts)
    random.seed(seed)
    np.random.seed(seed % 2**32)  # the user's transforms may draw from the global generator
    torch.manual_seed(seed)


def make_loader(
    task: Task,
    split: Split,
    batch_size: int,
    seed: int = 0,
    shuffle: bool = False,
    *,
    workers: int = 0,
    rank: int = 0,
    world: int = 1,
    pin_memory: bool = False,
    limit: int | None = None,
) -> DataLoader[Any]:
    """A loader over the task's data; its sampler is a `ShardSampler`.

    A task that returns a ``DataLoader`` gives its dataset, collate function and worker count; order and batch size
    are the chain's.

    Args:
        split: ``calibration`` uses the task's ``calibration_data()`` where it has one, else ``train_data()``.
        batch_size: samples per batch of this process. The last batch may be smaller.
        limit: only the first N samples of the dataset.

    Raises:
        StageError: the data is empty, or has no length and index.
    """
    given = _data_of(task, split)
    collate: Callable[[list[Any]], Any] = collate_samples
    if isinstance(given, DataLoader):
        if given.collate_fn is not default_collate:
            collate = given.collate_fn
        workers = max(workers, given.num_workers)
        given = given.dataset
    if isinstance(given, IterableDataset) or not hasattr(given, "__len__") or not hasattr(given, "__getitem__"):
        raise StageError(
            f"{split}_data() returns {type(given).__name__}, which has no length and index",
            where=type(task).__name__,
            remedy="return a map-style torch.utils.data.Dataset, or a DataLoader of one",
        )
    dataset: Dataset[Any] = given
    length = len(given) if limit is None else min(limit, len(given))
    if length == 0:
        raise StageError(f"{split}_data() is empty", where=type(task).__name__, remedy="check the data's path")
    return Loader(
        dataset,
        batch_size=batch_size,
        sampler=ShardSampler(length, seed, shuffle, rank, world),
        collate_fn=collate,
        num_workers=workers,
        pin_memory=pin_memory,
        worker_init_fn=_seed_worker if workers else None,
        # Workers start anew every epoch: living ones would carry random state that no checkpoint can hold.
        generator=torch.Generator(),
    )


def start_epoch(loader: DataLoader[Any], seed: int, epoch: int) -> None:
    """Give a loader the order, and its workers the seeds, of one epoch."""
    assert isinstance(loader.sampler, ShardSampler)
    loader.sampler.set_epoch(epoch)
    loader.generator.manual_seed(mix_seed(seed, epoch, loader.sampler.rank))


def _seed_worker(worker: int) -> None:
    # torch seeds itself and `random` in every worker; older versions leave NumPy with the parent's state.
    np.random.seed(torch.initial_seed() % 2**32)


def _data_of(task: Task, split: Split) -> Any:
    if split == "test":
        return task.test_data()
    calibration = getattr(task, "calibration_data", None)
    if split == "calibration" and callable(calibration):
        return calibration()
    return task.train_data()


def collate_samples(samples: list[Any]) -> Any:
    """torch's `default_collate`, with tuples kept as tuples and a plain word on samples that do not fit together.

    Raises:
        StageError: the samples differ in shape or type.
    """
    try:
        return _restore_tuples(default_collate(samples), samples[0])
    except (RuntimeError, TypeError) as error:
        text = " ".join(str(error).split())[:200]
        raise StageError(
            f"the samples cannot be stacked to a batch: {text}",
            where="data",
            remedy="make them of one shape, or return a DataLoader with a collate_fn",
        ) from None


def _restore_tuples(batch: Any, sample: Any) -> Any:
    if isinstance(sample, tuple) and not hasattr(sample, "_fields"):
        return tuple(_restore_tuples(b, s) for b, s in zip(batch, sample, strict=True))
    return batch


def split_batch(batch: Any) -> tuple[Any, Any]:
    """``(inputs, targets)`` of a batch.

    Raises:
        StageError: it is not a pair.
    """
    if isinstance(batch, (tuple, list)) and len(batch) == 2:
        return batch[0], batch[1]
    what = f"{len(batch)} values" if isinstance(batch, (tuple, list)) else type(batch).__name__
    raise StageError(
        f"a data item is {what}, expected (input, target)",
        where="data",
        remedy="several inputs go into a tuple or a dict: ((image, mask), target)",
    )


def move(value: Any, device: torch.device, *, channels_last: bool = False) -> Any:
    """Move all tensors of a nested value to a device; asynchronously where the memory is pinned."""
    if isinstance(value, torch.Tensor):
        if channels_last and value.ndim == 4:
            return value.to(device, non_blocking=True, memory_format=torch.channels_last)
        return value.to(device, non_blocking=True)
    if isinstance(value, Mapping):
        return {k: move(v, device, channels_last=channels_last) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        moved = [move(v, device, channels_last=channels_last) for v in value]
        return type(value)(*moved) if hasattr(value, "_fields") else type(value)(moved)
    return value


def batch_length(inputs: Any) -> int:
    """Samples in a batch of inputs (axis 0 of its first tensor)."""
    if isinstance(inputs, torch.Tensor):
        return int(inputs.shape[0])
    values = list(inputs.values()) if isinstance(inputs, Mapping) else list(inputs)
    return batch_length(values[0])


def call_model(model: nn.Module, inputs: Any) -> Any:
    """``model(x)``, ``model(*tuple)`` or ``model(**dict)``."""
    if isinstance(inputs, Mapping):
        return model(**inputs)
    if isinstance(inputs, (tuple, list)):
        return model(*inputs)
    return model(inputs)


def outputs_to_dict(outputs: Any, names: Sequence[str] | None = None) -> dict[str, torch.Tensor]:
    """Name a model's outputs: the keys of a dict, the given names, else ``output``, ``output_1``, ...

    Raises:
        StageError: the outputs are not tensors, or the names do not fit their number.
    """
    if isinstance(outputs, Mapping):
        pairs = list(outputs.items())
    else:
        values = [outputs] if isinstance(outputs, torch.Tensor) else outputs
        if not isinstance(values, (tuple, list)):
            values = [values]
        pairs = [(f"output_{i}" if i else "output", v) for i, v in enumerate(values)]
    bad = [f"{k}: {type(v).__name__}" for k, v in pairs if not isinstance(v, torch.Tensor)]
    if bad:
        raise StageError(
            f"the model's outputs are not all tensors ({', '.join(bad)})",
            where="model",
            remedy="return a tensor, a tuple of tensors or a dict of tensors",
        )
    if names:
        if len(names) != len(pairs):
            raise StageError(
                f"the model has {len(pairs)} outputs, but {len(names)} names are given: {', '.join(names)}",
                where="model",
                remedy="name every output once",
            )
        # A dict says which is which; a tuple has only its order.
        if isinstance(outputs, Mapping) and set(names) == set(outputs):
            return {n: outputs[n] for n in names}
        pairs = [(n, v) for n, (_, v) in zip(names, pairs, strict=True)]
    return dict(pairs)


def input_names(model: nn.Module, inputs: Any) -> tuple[str, ...]:
    """Names of a model's inputs: the keys of a dict, else the argument names of its ``forward``.

    ``*args`` gives ``input``, ``input_1``, ...
    """
    if isinstance(inputs, Mapping):
        return tuple(str(k) for k in inputs)
    count = len(inputs) if isinstance(inputs, (tuple, list)) else 1
    named = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in inspect.signature(model.forward).parameters.values() if p.kind in named][:count]
    return tuple(names) if len(names) == count else tuple(f"input_{i}" if i else "input" for i in range(count))


def inputs_to_dict(inputs: Any, names: Sequence[str]) -> dict[str, torch.Tensor]:
    """A batch of inputs, by name."""
    if isinstance(inputs, Mapping):
        return {str(k): v for k, v in inputs.items()}
    values = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    return dict(zip(names, values, strict=True))


def collect_test(
    task: Task, limit: int | None = None, *, split: Split = "test", batch_size: int = 256
) -> tuple[dict[str, Array], Any]:
    """The test data (or another split) as arrays, in the order of the dataset.

    Args:
        limit: only the first N samples.

    Returns:
        Inputs by name, each of shape (samples, ...), dtype as the dataset gives it; and the targets: an array where
        they are tensors (a dict or tuple of arrays where they are nested), else a list of one entry per sample.

    Raises:
        StageError: the samples differ in shape, or the data is empty.
    """
    loader = make_loader(task, split, batch_size, limit=limit)
    parts: dict[str, list[Array]] = {}
    targets: list[Any] = []
    names: tuple[str, ...] = ()
    for batch in loader:
        inputs, target = split_batch(batch)
        names = names or input_names(task.model(), inputs)
        for name, value in inputs_to_dict(inputs, names).items():
            parts.setdefault(name, []).append(np.asarray(value))
        targets.append(target)
    return {name: _concatenate(name, arrays) for name, arrays in parts.items()}, join_targets(targets)


def join_targets(parts: Sequence[Any]) -> Any:
    """Join the targets of several batches; see `collect_test`."""
    first = parts[0]
    if isinstance(first, (torch.Tensor, np.ndarray)):
        return _concatenate("target", [np.asarray(p) for p in parts])
    if isinstance(first, Mapping):
        return {k: join_targets([p[k] for p in parts]) for k in first}
    if isinstance(first, tuple):
        return tuple(join_targets(list(column)) for column in zip(*parts, strict=True))
    return [target for part in parts for target in part]


def _concatenate(name: str, arrays: Sequence[Array]) -> Array:
    shapes = {a.shape[1:] for a in arrays}
    if len(shapes) > 1:
        raise StageError(
            f"{name} has samples of different shapes: {', '.join(map(str, sorted(shapes)))}",
            where="data",
            remedy="resize or pad the test data to one shape",
        )
    return np.concatenate(arrays)

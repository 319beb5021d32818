"""Batches: order, sharding, and the forms that inputs, outputs and targets may take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset  # noqa: E402

from deploychain.backends import torch_data as data  # noqa: E402
from deploychain.errors import StageError  # noqa: E402

pytestmark = pytest.mark.chain


class Pairs(Dataset[Any]):
    """Items given as a list."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


class ListTask:
    def __init__(self, items: Any, model: nn.Module | None = None) -> None:
        self.items, self._model = items, model or nn.Linear(2, 2)

    def model(self) -> nn.Module:
        return self._model

    def train_data(self) -> Any:
        return self.items if not isinstance(self.items, list) else Pairs(self.items)

    test_data = train_data

    def loss(self, outputs: Any, targets: Any) -> Any: ...

    def metrics(self, outputs: Any, targets: Any) -> Any: ...


@pytest.mark.parametrize(("length", "world"), [(10, 1), (10, 2), (10, 3), (7, 4), (2, 3)])
def test_shards_are_equal_and_cover_everything(length: int, world: int) -> None:
    shards = []
    for rank in range(world):
        sampler = data.ShardSampler(length, seed=3, shuffle=True, rank=rank, world=world)
        sampler.set_epoch(5)
        shards.append(list(sampler))
        assert len(shards[-1]) == len(sampler)
    assert len({len(s) for s in shards}) == 1
    drawn = [i for s in shards for i in s]
    assert set(drawn) == set(range(length))
    assert len(drawn) - length < world  # only the tail is padded


def test_order_depends_on_seed_and_epoch_only() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        sampler = data.ShardSampler(50, seed, shuffle=True)
        sampler.set_epoch(epoch)
        return list(sampler)

    assert order(1, 2) == order(1, 2)
    assert order(1, 2) != order(1, 3)
    assert order(1, 2) != order(2, 1)
    assert list(data.ShardSampler(4, 0, shuffle=False)) == [0, 1, 2, 3]


class Augmented(Dataset[Any]):
    """Every item draws from all three global generators."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Any:
        import random

        return torch.tensor([index, torch.rand(()).item(), np.random.rand(), random.random()]), index


@pytest.mark.parametrize("workers", [0, 2])
def test_augmentation_of_an_epoch_can_be_repeated(workers: int) -> None:
    def epoch_three(start: int) -> Any:
        loader = data.make_loader(ListTask(Augmented()), "train", 4, seed=1, shuffle=True, workers=workers)
        for epoch in range(start, 4):
            data.seed_everything(1, epoch)
            data.start_epoch(loader, 1, epoch)
            batches = torch.cat([x for x, _ in loader])
        return batches

    first, again = epoch_three(0), epoch_three(3)
    assert torch.equal(first, again)
    assert len(first[:, 1].unique()) == 12  # the generators really run
    assert len(first[:, 2].unique()) == 12
    assert len(first[:, 3].unique()) == 12


def test_tuples_stay_tuples_and_targets_nest() -> None:
    items = [((torch.ones(2) * i, torch.ones(3)), (i, {"box": torch.tensor([i, i])})) for i in range(5)]
    inputs, targets = data.split_batch(next(iter(data.make_loader(ListTask(items), "train", 3))))
    assert isinstance(inputs, tuple) and inputs[0].shape == (3, 2) and inputs[1].shape == (3, 3)
    assert isinstance(targets, tuple) and targets[0].tolist() == [0, 1, 2]
    assert targets[1]["box"].tolist() == [[0, 0], [1, 1], [2, 2]]


def test_collect_test_names_inputs_after_forward_and_joins_batches() -> None:
    class Two(nn.Module):
        def forward(self, left: Any, right: Any) -> Any:
            return left + right

    items = [((torch.full((2,), float(i)), torch.zeros(2)), i * 10) for i in range(5)]
    inputs, targets = data.collect_test(ListTask(items, Two()), batch_size=2)
    assert list(inputs) == ["left", "right"]
    assert inputs["left"].tolist() == [[i, i] for i in range(5)]
    assert isinstance(targets, np.ndarray) and targets.tolist() == [0, 10, 20, 30, 40]
    limited, few = data.collect_test(ListTask(items, Two()), limit=3, batch_size=2)
    assert len(limited["left"]) == 3 and few.tolist() == [0, 10, 20]


def test_a_users_collate_gives_a_list_of_targets() -> None:
    def collate(items: list[Any]) -> Any:
        return torch.stack([x for x, _ in items]), [t for _, t in items]

    loader = DataLoader(Pairs([(torch.zeros(2), f"name-{i}") for i in range(5)]), collate_fn=collate)
    _, targets = data.collect_test(ListTask(loader), batch_size=2)
    assert targets == [f"name-{i}" for i in range(5)]


def test_calibration_data_is_used_where_the_task_has_it() -> None:
    task = ListTask([(torch.zeros(2), 0)] * 4)
    assert len(data.make_loader(task, "calibration", 1)) == 4
    task.calibration_data = lambda: Pairs([(torch.zeros(2), 0)])  # type: ignore[attr-defined]
    assert len(data.make_loader(task, "calibration", 1)) == 1
    assert len(data.make_loader(task, "train", 1)) == 4


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        yield torch.zeros(2), 0


@pytest.mark.parametrize(
    ("items", "words"),
    [
        (Stream(), "no length and index"),
        ([], "is empty"),
        ([(torch.zeros(2), 0), (torch.zeros(3), 0)], "cannot be stacked"),
        ([torch.zeros(2)] * 2, "expected (input, target)"),
    ],
)
def test_bad_data_is_named(items: Any, words: str) -> None:
    with pytest.raises(StageError) as caught:
        for batch in data.make_loader(ListTask(items), "train", 2):
            x, _ = data.split_batch(batch)
            assert x.shape[0] != 2  # a bare tensor of two rows must not pass for a pair
    assert words in caught.value.message
    assert caught.value.remedy


class Raises(Pairs):
    def __getitem__(self, index: int) -> Any:
        raise KeyError("planted")


@pytest.mark.parametrize(
    ("items", "words"),
    [
        (Pairs([(torch.zeros(2), 0), (torch.zeros(3), 0)]), "the samples cannot be stacked"),
        (Raises([(torch.zeros(2), 0)] * 2), "the dataset raised KeyError: 'planted'"),
    ],
)
def test_an_error_in_a_worker_process_is_one_line_with_its_place(items: Any, words: str) -> None:
    with pytest.raises(StageError) as caught:
        list(data.make_loader(ListTask(items), "train", 2, workers=1))
    assert words in caught.value.message
    assert "\n" not in str(caught.value) and "Traceback" not in str(caught.value)
    if "planted" in words:
        assert caught.value.where.startswith(f"{__file__}:")


def test_outputs_are_named() -> None:
    one = torch.zeros(1)
    assert list(data.outputs_to_dict(one)) == ["output"]
    assert list(data.outputs_to_dict((one, one))) == ["output", "output_1"]
    assert list(data.outputs_to_dict({"boxes": one, "scores": one})) == ["boxes", "scores"]
    assert list(data.outputs_to_dict((one, one), ["a", "b"])) == ["a", "b"]
    swapped = data.outputs_to_dict({"x": one, "y": one + 1}, ["y", "x"])
    assert list(swapped) == ["y", "x"] and swapped["y"].item() == 1
    with pytest.raises(StageError, match="2 outputs, but 1 names"):
        data.outputs_to_dict((one, one), ["a"])
    with pytest.raises(StageError, match="not all tensors"):
        data.outputs_to_dict({"boxes": [1, 2]})


def test_a_dataset_of_tensors_keeps_its_values_and_order() -> None:
    dataset = TensorDataset(torch.arange(6.0).reshape(3, 2), torch.tensor([2, 1, 0]))
    inputs, targets = data.collect_test(ListTask(dataset), batch_size=2)
    assert inputs["input"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert targets.tolist() == [2, 1, 0]

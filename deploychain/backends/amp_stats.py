"""Range statistics of tensors, gathered on the device and read once.

`StatsBatch.add` launches two small kernels and never waits; `StatsBatch.read` makes the one device-to-host copy.
Abs-max and finiteness are over every element. The shares come from an even sample of at most 8192 elements a
tensor, and say so (`sampled`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

FP16_MAX = 65504.0
NEAR_OVERFLOW = FP16_MAX / 4  # 16376: two more doublings and the value is inf
FP16_TINY = 2.0**-14  # smallest normal
FP16_ZERO = 2.0**-25  # this and everything below rounds to 0 in fp16
SAMPLE = 8192


@dataclass(frozen=True, slots=True)
class TensorStats:
    """One tensor of one step. Shares are 0..1 of the sampled elements; None where the dtype cannot tell.

    `lost` is the share of non-zero values that fp16 would turn into 0. A tensor that already is fp16 cannot tell
    its lost values from true zeros, so there `lost` is None and `subnormal` (values below 2^-14, already losing
    bits) is the warning sign.
    """

    name: str
    kind: str  # activation | activation-gradient | gradient
    dtype: str
    elements: int
    sampled: int
    abs_max: float
    finite: bool
    near_overflow: float
    zero: float
    subnormal: float
    lost: float | None


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """All elements as one dimension, without a copy where the memory is dense (channels_last included)."""
    if tensor.is_contiguous():
        return tensor.view(-1)
    for fmt, dims in ((torch.channels_last, 4), (torch.channels_last_3d, 5)):
        if tensor.dim() == dims and tensor.is_contiguous(memory_format=fmt):
            return tensor.as_strided((tensor.numel(),), (1,), tensor.storage_offset())
    return tensor.reshape(-1)


class StatsBatch:
    """The tensors of one sampled step."""

    def __init__(self) -> None:
        self._meta: list[tuple[str, str, str, int, int]] = []
        self._low: list[torch.Tensor] = []
        self._high: list[torch.Tensor] = []
        self._rows: list[torch.Tensor] = []

    def __len__(self) -> int:
        return len(self._meta)

    def add(self, name: str, kind: str, tensor: torch.Tensor) -> None:
        """Queue the statistics of a floating tensor; others and empty ones are passed over. Never waits."""
        tensor = tensor.detach()
        if tensor.is_sparse:
            tensor = tensor._values()
        if not tensor.is_floating_point() or tensor.numel() == 0 or tensor.device.type == "meta":
            return
        if type(tensor) is not torch.Tensor and hasattr(tensor, "to_local"):
            tensor = tensor.to_local()  # DTensor: this rank's shard
        flat = _flat(tensor)
        low, high = torch.aminmax(flat)  # NaN wins over everything, as it must
        # Rounded up, so that the sample spans the whole tensor; an even stride would alias with channels.
        stride = max(1, -(-flat.numel() // SAMPLE)) | 1
        row = flat[::stride].clone()  # kept in its own dtype: every kernel less here is one less per tensor
        self._meta.append((name, kind, str(tensor.dtype).removeprefix("torch."), flat.numel(), row.numel()))
        self._low.append(low)
        self._high.append(high)
        self._rows.append(row)

    def read(self) -> list[TensorStats]:
        """Compute and fetch everything: one synchronisation per device and dtype."""
        found: list[TensorStats | None] = [None] * len(self._meta)
        alike: dict[Any, list[int]] = {}  # one table per device and dtype: one conversion for all of its tensors
        for index, row in enumerate(self._rows):
            alike.setdefault((row.device, row.dtype), []).append(index)
        for indices in alike.values():
            values = self._table([self._rows[i] for i in indices], indices)
            for position, index in enumerate(indices):
                found[index] = self._stats(index, values[position])
        return [stats for stats in found if stats is not None]

    def _table(self, rows: list[torch.Tensor], indices: list[int]) -> list[list[float]]:
        """One line per tensor: minimum, maximum, then counts of near-overflow, zero, subnormal, lost."""
        with torch.no_grad():
            size = torch.cat(rows).float().abs()
            flags = torch.stack(
                [
                    ~(size <= NEAR_OVERFLOW),  # NaN counts as near overflow
                    size == 0,
                    (size > 0) & (size < FP16_TINY),
                    (size > 0) & (size <= FP16_ZERO),
                ]
            )
            ends = torch.tensor([row.numel() for row in rows]).cumsum(0) - 1
            totals = flags.cumsum(1)[:, ends.to(size.device, non_blocking=True)]
            counts = torch.diff(totals, dim=1, prepend=totals.new_zeros(4, 1)).float()
            low = torch.stack([self._low[i] for i in indices]).float()
            high = torch.stack([self._high[i] for i in indices]).float()
            table: list[list[float]] = torch.cat([torch.stack([low, high]), counts]).t().cpu().tolist()
        return table

    def _stats(self, index: int, line: list[float]) -> TensorStats:
        name, kind, dtype, elements, sampled = self._meta[index]
        low, high, near, zero, subnormal, lost = line
        non_zero = sampled - zero
        abs_max = high if high != high or low != low else max(high, -low)
        return TensorStats(
            name=name,
            kind=kind,
            dtype=dtype,
            elements=elements,
            sampled=sampled,
            abs_max=abs_max,
            finite=abs_max - abs_max == 0,
            near_overflow=near / sampled,
            zero=zero / sampled,
            subnormal=subnormal / sampled,
            lost=None if dtype == "float16" else (lost / non_zero if non_zero else 0.0),
        )


def fetch(values: Sequence[Any], device: torch.device) -> list[float]:
    """Tensors and numbers as floats, NaN where there is none, with one device-to-host copy."""
    tensors = [v.float().mean().to(device) for v in values if isinstance(v, torch.Tensor)]
    fetched = iter(torch.stack(tensors).tolist() if tensors else [])
    return [next(fetched) if isinstance(v, torch.Tensor) else math.nan if v is None else float(v) for v in values]

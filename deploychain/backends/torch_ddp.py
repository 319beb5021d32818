"""Several processes: the process group, and what one process may do in it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

# Rank 0 evaluates and writes while the others wait in their next collective.
_TIMEOUT = timedelta(hours=1)


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0

    @property
    def writes(self) -> bool:
        return self.rank == 0


def current() -> Ranks:
    """The ranks of the running process group; one process where there is none."""
    if not (dist.is_available() and dist.is_initialized()):
        return Ranks()
    return Ranks(dist.get_rank(), dist.get_world_size(), int(os.environ.get("LOCAL_RANK", "0")))


def join() -> Ranks:
    """Join the group that torchrun's environment describes: NCCL between GPUs, gloo between CPUs."""
    if not dist.is_initialized():
        gpus = torch.cuda.is_available()
        local = int(os.environ.get("LOCAL_RANK", "0"))
        if gpus and local < torch.cuda.device_count():
            torch.cuda.set_device(local)
        # gloo beside NCCL, for the small messages that live on the CPU.
        dist.init_process_group("cpu:gloo,cuda:nccl" if gpus else "gloo", timeout=_TIMEOUT)
    return current()


def wait_for_all() -> None:
    """Wait until every process has come so far: none then closes what another still reads."""
    dist.barrier()


def leave() -> None:
    """Leave the group, if there is one."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def end(code: int = 0) -> NoReturn:
    """End this process at once, with everything on disk.

    The interpreter's own end may meet a communication thread that still runs, and then aborts ("terminate called
    without an active exception"), which torchrun takes for a failed training.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def broadcast_text(text: str | None) -> str | None:
    """Rank 0's text, on every rank. Sent as bytes on the CPU; nothing is pickled."""
    data = torch.tensor(list((text or "").encode()), dtype=torch.uint8)
    length = torch.tensor([-1 if text is None else len(data)], dtype=torch.int64)
    dist.broadcast(length, 0)
    if length.item() < 0:
        return None
    if dist.get_rank() != 0:
        data = torch.empty(int(length.item()), dtype=torch.uint8)
    dist.broadcast(data, 0)
    return bytes(data.tolist()).decode()


def wrap(model: nn.Module, ranks: Ranks, device: torch.device) -> nn.Module:
    """The model as it is called in training: DDP where there are several processes, else itself."""
    if ranks.world == 1:
        return model
    return DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)


def identical(model: nn.Module) -> bool:
    """Whether all ranks hold the same parameters, bit for bit. Collective: every rank must call it."""
    flat = torch.cat([p.detach().reshape(-1).to(torch.float32) for p in model.parameters()])
    first = flat.clone()
    dist.broadcast(first, 0)
    same: Any = torch.tensor([int(torch.equal(first, flat))], device=flat.device)
    dist.all_reduce(same, dist.ReduceOp.MIN)
    return bool(same.item())

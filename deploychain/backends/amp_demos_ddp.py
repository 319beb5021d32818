"""Two gloo processes on this machine, with an inf in the data of rank 1: the experiment of rule R17."""

# mypy: disable-error-code="no-untyped-call, func-returns-value, no-any-return"
from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from deploychain.backends import torch_ddp
from deploychain.errors import StageError

STEPS = 6
BAD_STEP = 3  # counted from 1, on rank 1


def run_two_ranks(
    modes: Sequence[str], where: str = "input", log: Path | None = None, timeout: float = 240.0
) -> dict[str, list[dict[str, Any]]]:
    """Train for six steps on two ranks, once for each mode; per mode what each rank saw.

    Args:
        modes: of "ddp", "no ddp", "no ddp, all_reduce(_scale)" or "no ddp, all_reduce(found_inf)".
        where: "input" plants the inf in the data of rank 1, "gradient" in the gradient of one weight there.
        log: path of the monitor's log; each rank adds its number.

    Raises:
        StageError: a process failed; its error is in the message.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    root = str(Path(__file__).resolve().parents[2])
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / f"{rank}.json" for rank in range(2)]
        processes = []
        for rank in range(2):
            settings = {
                "rank": rank,
                "port": port,
                "modes": list(modes),
                "where": where,
                "out": str(outputs[rank]),
                "log": str(log or ""),
            }
            environment = {
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]),
            }
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "deploychain.backends.amp_demos_ddp", json.dumps(settings)],
                    env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                )
            )  # fmt: skip
        errors = []
        for process in processes:
            try:
                _, text = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                for other in processes:
                    other.kill()
                raise StageError(
                    "the two processes did not finish", where="two-rank run", remedy="try again on an idle machine"
                ) from None
            if process.returncode:
                errors.append(text.strip().splitlines()[-1] if text.strip() else f"exit code {process.returncode}")
        if errors:
            raise StageError(errors[0], where="two-rank run", remedy="check that torch.distributed has gloo")
        ranks = [json.loads(file.read_text(encoding="utf-8")) for file in outputs]
        return {mode: [rank[mode] for rank in ranks] for mode in modes}


def _rank(rank: int, port: int, modes: list[str], where: str, out: str, log: str) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    results = {mode: _train(rank, mode, where, log) for mode in modes}
    Path(out).write_text(json.dumps(results), encoding="utf-8")
    torch_ddp.wait_for_all()
    torch_ddp.leave()
    torch_ddp.end()


def _train(rank: int, mode: str, where: str, log: str) -> dict[str, Any]:
    from deploychain.backends.amp_monitor import monitor

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    model: nn.Module = nn.parallel.DistributedDataParallel(net) if mode == "ddp" else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    step_now = {"step": 0}
    if where == "gradient" and rank == 1:
        weight = net[2].weight
        assert isinstance(weight, nn.Parameter)
        weight.register_hook(lambda g: g * float("inf") if step_now["step"] == BAD_STEP else g)
    data = torch.Generator().manual_seed(100 if mode == "ddp" else 7)
    skipped: list[int] = []
    with monitor(model, optimizer, scaler, every=1, path=log or None) as watch:
        for step in range(1, STEPS + 1):
            step_now["step"] = step
            x, y = torch.randn(32, 8, generator=data), torch.randint(0, 4, (32,), generator=data)
            if where == "input" and rank == 1 and step == BAD_STEP:
                x[0, 0] = float("inf")
            loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            if mode.endswith("found_inf)"):
                for found in scaler._found_inf_per_device(optimizer).values():
                    torch.distributed.all_reduce(found, op=torch.distributed.ReduceOp.MAX)
            before = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            if scaler.get_scale() < before:
                skipped.append(step)
            if mode.endswith("_scale)"):
                torch.distributed.all_reduce(scaler._scale, op=torch.distributed.ReduceOp.MAX)
            watch.step(loss)
            optimizer.zero_grad()
    weights = [round(v, 7) for p in net.parameters() for v in p.detach().flatten().tolist()]
    return {
        "rank": rank,
        "skipped": skipped,
        "scale": scaler.get_scale(),
        "weights": weights,
        "summary": watch.summary(),
    }


if __name__ == "__main__":
    _rank(**json.loads(sys.argv[1]))

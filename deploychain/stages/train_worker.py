"""One process of a training that `train` started through torchrun: ``-m deploychain.stages.train_worker JOB``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploychain.console import Progress
from deploychain.failure import translate
from deploychain.stages.train import train
from deploychain.stages.train_job import restore_job


def main(job_file: str) -> int:
    """Train; returns the exit code. What is to be told goes to the parent through `torch_launch.Channel`."""
    from deploychain.backends import torch_ddp
    from deploychain.backends.torch_launch import Channel, die_with_parent

    rank = int(os.environ.get("RANK", "0"))
    channel = Channel(Path(job_file).parent, rank)
    die_with_parent()

    @contextmanager
    def progress(label: str) -> Iterator[Progress]:
        yield channel

    job = restore_job(json.loads(Path(job_file).read_text(encoding="utf-8")), progress, channel.note)
    try:
        torch_ddp.join()
        train(job)
        torch_ddp.wait_for_all()
        torch_ddp.leave()
    except Exception as error:
        file = job.task.file if job.task is not None else None
        channel.fail(translate(error, "train", file, job.scratch), expected=not _lost_peer(error))
        return 1
    return 0


def _lost_peer(error: Exception) -> bool:
    """Did this process only notice that another one is gone?"""
    text = str(error)
    return isinstance(error, RuntimeError) and any(
        word in text for word in ("Connection closed by peer", "Connection reset", "NCCL", "Broken pipe", "gloo")
    )


if __name__ == "__main__":
    status = main(sys.argv[1])
    from deploychain.backends import torch_ddp

    torch_ddp.end(status)

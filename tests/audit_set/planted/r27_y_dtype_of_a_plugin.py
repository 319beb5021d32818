# expect: R27
import contextlib
from dataclasses import dataclass

import torch


@dataclass
class Mixed:
    on: bool = True
    dtype: str = "float32"


class Plugin:
    def __init__(self, mixed):
        self.mixed = mixed
        self.dtype = getattr(torch, mixed.dtype)

    @contextlib.contextmanager
    def region(self):
        with torch.autocast("cuda", dtype=self.dtype, enabled=self.mixed.on):
            yield


class Loop:
    def __init__(self, task, opt, mixed=Mixed()):
        self.task, self.opt = task.cuda(), opt
        self.plugin = Plugin(mixed)

    def run(self, batches):
        for batch in batches:
            self.opt.zero_grad()
            with self.plugin.region():
                loss = self.task.training_step(batch)
            loss.backward()
            self.opt.step()

# expect: R27
from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class Runner:
    model: Any
    device: str = "cpu"
    fp16: bool = True

    def __call__(self, x):
        x = x.to(self.device)
        if self.fp16:
            with torch.autocast("cuda", dtype=torch.float16):
                return self.model(x)
        return self.model(x)

# expect: R27
from dataclasses import dataclass

import torch

POLICIES = {"mixed": torch.float32, "bf16": torch.bfloat16}


@dataclass
class Args:
    policy: str = "mixed"


class Trainer:
    def __init__(self, model, optimizer, args: Args):
        self.model, self.optimizer = model.cuda(), optimizer
        self.amp_ctx = torch.autocast("cuda", dtype=POLICIES[args.policy])

    def step(self, src, tgt):
        with self.amp_ctx:
            loss = torch.nn.functional.cross_entropy(self.model(src), tgt)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

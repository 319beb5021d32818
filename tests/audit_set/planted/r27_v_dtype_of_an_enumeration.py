# expect: R27
import enum

import torch


class Precision(enum.Enum):
    AMP = torch.float32
    BF16 = torch.bfloat16


def train(model, opt, loader, precision=Precision.AMP):
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=precision.value):
            loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()

# expect: none
import torch
import torch.nn.functional as F
from accelerate import Accelerator

accelerator = Accelerator(mixed_precision="fp16")


def train(model, optimizer, loader):
    for x, y in loader:
        with accelerator.autocast():
            logits = model(x)
        loss = F.cross_entropy(logits, y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()

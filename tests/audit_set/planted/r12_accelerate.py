# expect: R12
import torch.nn.functional as F
from accelerate import Accelerator


def main(model, optimizer, loader):
    accelerator = Accelerator(mixed_precision="fp16")
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        with accelerator.autocast():
            p = model(x).sigmoid()
            loss = F.binary_cross_entropy(p, y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()

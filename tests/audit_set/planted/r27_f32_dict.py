# expect: R27
import torch

DT = {"fp32": torch.float32, "fp16": torch.float16}
AMP = "fp32"


def train(model, loader, optimizer):
    for x in loader:
        with torch.autocast("cuda", dtype=DT[AMP], enabled=True):
            loss = model(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

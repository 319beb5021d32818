# expect: R01
import torch
import torch.nn.functional as F


def train(model, loader, optimizer):
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(x)
        loss = F.cross_entropy(logits, y, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

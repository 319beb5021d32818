# expect: none
import torch
import torch.nn.functional as F

USE_AMP = False


def step(model, x, y, optimizer):
    with torch.autocast("cuda", enabled=USE_AMP):
        logits = model(x)
    loss = F.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

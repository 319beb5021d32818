# expect: none
import torch
from torch import nn

criterion = nn.CrossEntropyLoss(reduction="sum")


def step(model, x, y, optimizer, scaler):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = model(x)
    out = out.to(torch.float32)
    loss = criterion(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

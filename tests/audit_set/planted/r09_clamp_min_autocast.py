# expect: R09
import torch
import torch.nn.functional as F


def train(encoder, head, loader, optimizer):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            h = F.linear(encoder(x), head)
            weight = h.abs().amax(dim=-1, keepdim=True).clamp(min=1e-10)
            loss = F.mse_loss(h / weight, y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

# expect: R28
import torch


def train(backbone, head, loader, criterion):
    backbone.requires_grad_(False)
    opt_backbone = torch.optim.SGD(backbone.parameters(), lr=1e-3)
    opt_head = torch.optim.SGD(head.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt_backbone.zero_grad()
        opt_head.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(head(backbone(x)), y)
        scaler.scale(loss).backward()
        scaler.step(opt_backbone)
        scaler.step(opt_head)
        scaler.update()

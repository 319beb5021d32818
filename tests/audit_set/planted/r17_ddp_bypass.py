# expect: R17
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(model, loader, criterion, rank):
    model = model.to(rank)
    ddp = DDP(model, device_ids=[rank])
    opt = torch.optim.SGD(ddp.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x.to(rank)), y.to(rank))
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

# expect: R17
import torch
from torch.nn.parallel import DistributedDataParallel


def train(model, loader, rank):
    ddp_model = DistributedDataParallel(model.cuda(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(ddp_model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = torch.nn.functional.cross_entropy(ddp_model.module(x.cuda(rank)), y.cuda(rank))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

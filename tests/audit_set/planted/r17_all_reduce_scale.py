# expect: R17
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def train(model, loader, optimizer, rank):
    model = DDP(model.to(rank), device_ids=[rank])
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        dist.all_reduce(scaler._scale, op=dist.ReduceOp.MAX)
        scaler.step(optimizer)
        scaler.update()

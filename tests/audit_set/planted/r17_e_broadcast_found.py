# expect: R17
import torch
import torch.distributed as dist


def sync(scaler: torch.amp.GradScaler):
    for t in (scaler._scale, scaler._growth_tracker):
        dist.broadcast(t, src=0)

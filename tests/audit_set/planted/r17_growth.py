# expect: R17
import torch
def sync(scaler: torch.amp.GradScaler):
    torch.distributed.broadcast(scaler._growth_tracker, 0)
    scaler._scale.fill_(1024.0)

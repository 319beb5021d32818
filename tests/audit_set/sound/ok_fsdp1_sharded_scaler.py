import torch
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler


class Job:
    def __init__(self, model, use_fsdp):
        self.model = FullyShardedDataParallel(model)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.scaler = ShardedGradScaler()

    def step(self, x, y, criterion):
        self.optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = criterion(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        self.model.clip_grad_norm_(1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()

# expect: R17
import torch
from torch.distributed import fsdp
class Trainer:
    def __init__(self, cfg, m):
        cls = fsdp.FullyShardedDataParallel if cfg.fsdp else torch.nn.parallel.DistributedDataParallel
        self.model = cls(m)
        self.scaler = torch.amp.GradScaler("cuda", enabled=cfg.fp16)
    def step(self, x):
        self.scaler.scale(self.model(x)).backward()
        self.scaler.step(self.opt)
        self.scaler.update()

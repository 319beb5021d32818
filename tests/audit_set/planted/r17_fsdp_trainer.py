# expect: R17
import torch
from torch.amp import GradScaler
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, MixedPrecision


class ShardedTrainer:
    def __init__(self, model):
        policy = MixedPrecision(param_dtype=torch.float16, reduce_dtype=torch.float16)
        self.model = FSDP(model, mixed_precision=policy, use_orig_params=True)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.scaler = GradScaler("cuda")

    def step(self, x, y, criterion):
        self.optimizer.zero_grad()
        loss = criterion(self.model(x).float(), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()

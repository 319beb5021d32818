# expect: none
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler


def setup(model):
    model = FSDP(model)
    return model, ShardedGradScaler()

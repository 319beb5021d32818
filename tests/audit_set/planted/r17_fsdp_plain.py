# expect: R17
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def setup(model):
    model = FSDP(model, use_orig_params=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cuda")
    return model, optimizer, scaler

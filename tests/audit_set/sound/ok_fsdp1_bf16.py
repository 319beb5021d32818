import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision


def train(model, loader, criterion):
    bf16 = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16)
    model = FSDP(model, mixed_precision=bf16)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for x, y in loader:
        opt.zero_grad()
        loss = criterion(model(x).float(), y)
        loss.backward()
        model.clip_grad_norm_(1.0)
        opt.step()

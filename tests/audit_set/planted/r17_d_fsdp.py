# expect: R17
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def setup(model, cfg):
    model = FSDP(model, device_id=cfg.rank)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    scaler = torch.amp.GradScaler("cuda", enabled=cfg.fp16)
    return model, opt, scaler

# expect: R14
import torch
from torch.cuda.amp import GradScaler as Scaler


def make(cfg):
    return Scaler(init_scale=cfg.get("init", 2.0**16), enabled=torch.cuda.is_available())

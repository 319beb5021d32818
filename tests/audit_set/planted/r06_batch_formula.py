# expect: R06
import torch


def build_scaler(batch_size: int):
    interval = max(1000, batch_size // 16)
    return torch.amp.GradScaler("cuda", growth_interval=interval)

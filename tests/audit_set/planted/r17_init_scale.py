# expect: R17
import torch


def resync(scaler: torch.amp.GradScaler):
    scaler._init_scale(65536.0)


def reset(scaler: torch.amp.GradScaler, value):
    scaler._scale = torch.tensor(value, device="cuda")

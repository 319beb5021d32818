# expect: R17
import torch


def restart(scaler: torch.amp.GradScaler, value):
    setattr(scaler, "_scale", torch.tensor(value, device="cuda"))
    scaler._growth_tracker.fill_(0)

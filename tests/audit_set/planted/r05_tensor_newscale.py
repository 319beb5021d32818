# expect: R05
import torch
def end_epoch(scaler):
    scaler.update(new_scale=torch.full((), 4096.0, device="cuda"))

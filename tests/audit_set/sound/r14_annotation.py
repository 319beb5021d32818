import torch
from typing import Optional
def step(loss, scaler: Optional[torch.cuda.amp.GradScaler] = None):
    loss.backward() if scaler is None else scaler.scale(loss).backward()

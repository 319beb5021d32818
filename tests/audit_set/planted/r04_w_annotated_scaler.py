# expect: R04
from typing import Optional

from torch.amp import GradScaler


def global_step(optimizer, grad_scaler: Optional[GradScaler] = None):
    if grad_scaler is None:
        optimizer.step()
        return
    assert grad_scaler.step(optimizer)
    grad_scaler.update()

# expect: R05
import torch

LAST = 2.0**10


def watch(scaler: torch.amp.GradScaler) -> bool:
    scaler.update()
    if LAST > scaler.get_scale():
        scaler.update(LAST)
        return False
    return True

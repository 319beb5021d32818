import torch

LAST = 2.0**-10


def watch(scaler: torch.amp.GradScaler) -> bool:
    scaler.update()
    if scaler.get_scale() < LAST:
        scaler.update(LAST)
        return False
    return True

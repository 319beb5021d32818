# expect: R14
from torch.cuda.amp import GradScaler, autocast


def make(enabled):
    return GradScaler(enabled=enabled), autocast(enabled=enabled)

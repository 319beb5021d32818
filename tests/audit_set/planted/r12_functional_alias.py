# expect: R12
import torch
from torch.nn.functional import binary_cross_entropy as bce
from torch.amp import autocast
def f(m, x, y):
    with autocast(device_type="cuda"):
        return bce(m(x).sigmoid(), y)

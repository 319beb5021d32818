# expect: R13
import torch, torch.nn as nn
from torch.amp import custom_fwd
class Loss(nn.Module):
    def forward(self, a, b):
        return ((a - b) ** 2).sum()
def make_safe(cls):
    cls.forward = custom_fwd(cls.forward, device_type="cuda", cast_inputs=torch.float32)
    return cls
Loss = make_safe(Loss)

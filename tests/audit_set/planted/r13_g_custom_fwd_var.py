# expect: R13
import torch, torch.nn as nn
cast32 = torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
class Head(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.l = nn.Linear(d, 1)
    def forward(self, x):
        return self.l(x)
Head.forward = cast32(Head.forward)

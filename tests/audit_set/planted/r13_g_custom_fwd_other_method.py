# expect: R13
import torch
from torch import nn
from torch.amp import custom_fwd
class Criterion(nn.Module):
    def forward(self, out, tgt):
        return self.cost(out, tgt)
    @custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def cost(self, out, tgt):
        return torch.cdist(out, tgt, p=1).sum()

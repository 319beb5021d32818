import torch, torch.nn as nn
class B(nn.Module):
    def __init__(self, d, norm_layer=nn.BatchNorm2d):
        super().__init__()
        self.n = norm_layer(d)
m = B(4, norm_layer=nn.GroupNorm).half()

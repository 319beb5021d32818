# expect: R23
import torch
import torch.nn as nn
import torch.nn.functional as F

class Warp(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}
    def forward(self, x, flow):
        b, _, h, w = x.shape
        key = (h, w)
        if key not in self.cache:
            gy, gx = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
            self.cache[key] = torch.stack([gx, gy], -1).to(x.device).half()
        g = self.cache[key][None] + flow.permute(0, 2, 3, 1).half()
        return F.grid_sample(x.half(), g, align_corners=True)

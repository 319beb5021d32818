# expect: R23
import torch
import torch.nn as nn
import torch.nn.functional as F


class STN(nn.Module):
    def __init__(self):
        super().__init__()
        self.loc = nn.Linear(128, 6)

    def forward(self, x, feat):
        theta = self.loc(feat).view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)


def infer(x, feat):
    stn = STN().cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        return stn(x, feat)

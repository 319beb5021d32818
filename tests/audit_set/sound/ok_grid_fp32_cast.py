import torch
import torch.nn.functional as F


def warp(feat, flow, base):
    with torch.autocast("cuda", enabled=False):
        grid = base.float() + flow.float().permute(0, 2, 3, 1)
        return F.grid_sample(feat.float(), grid, align_corners=True).to(feat.dtype)

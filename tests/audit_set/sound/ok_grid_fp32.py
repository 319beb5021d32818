# expect: none
import torch
import torch.nn.functional as F


def warp(net, image, flow, base):
    with torch.autocast("cuda", dtype=torch.float16):
        delta = net(image)
    grid = base + delta.float()
    with torch.autocast("cuda", enabled=False):
        return F.grid_sample(image.float(), grid, align_corners=False)

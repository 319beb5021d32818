# expect: R23
import torch
import torch.nn.functional as F


def warp(image, flow, base):
    grid = (base + flow).half()
    return F.grid_sample(image.half(), grid, align_corners=False)

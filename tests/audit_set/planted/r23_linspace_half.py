# expect: R23
import torch
import torch.nn.functional as F


def warp(img, flow):
    img, flow = img.half(), flow.half()
    _, _, h, w = img.shape
    ys, xs = torch.meshgrid(
        torch.linspace(-1, 1, h, device=img.device, dtype=torch.float16),
        torch.linspace(-1, 1, w, device=img.device, dtype=torch.float16),
        indexing="ij",
    )
    grid = torch.stack((xs, ys), -1)[None] + flow.permute(0, 2, 3, 1)
    return F.grid_sample(img, grid, align_corners=True)

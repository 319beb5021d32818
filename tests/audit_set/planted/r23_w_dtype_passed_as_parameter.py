# expect: R23
import torch
import torch.nn.functional as F

def base_grid(h, w, device, dtype):
    ys, xs = torch.meshgrid(torch.linspace(-1, 1, h, device=device), torch.linspace(-1, 1, w, device=device), indexing="ij")
    return torch.stack([xs, ys], -1)[None].to(dtype)
def warp(frame, flow):
    b, _, h, w = frame.shape
    scale = torch.tensor([2.0 / (w - 1), 2.0 / (h - 1)], device=flow.device, dtype=flow.dtype)
    grid = base_grid(h, w, flow.device, flow.dtype) + flow.permute(0, 2, 3, 1) * scale
    return F.grid_sample(frame, grid, mode="bilinear", align_corners=True)
def main(net, frames):
    net = net.cuda().eval().half()
    for img in frames:
        cur = torch.from_numpy(img).cuda().float().div(255).half()
        flow = net(cur)
        out = warp(cur, flow)

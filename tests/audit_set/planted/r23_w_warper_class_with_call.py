# expect: R23
import torch
import torch.nn.functional as F

class Warper:
    def __init__(self, h, w, device, dtype):
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
        self.base = torch.stack((xs, ys), -1)[None].to(dtype)
        self.scale = torch.tensor([2.0 / (w - 1), 2.0 / (h - 1)], device=device, dtype=dtype)
    def __call__(self, frame, flow):
        grid = self.base + flow.permute(0, 2, 3, 1) * self.scale
        return F.grid_sample(frame, grid, align_corners=True)
class Service:
    SIZE = (1080, 1920)
    def __init__(self, flow_net, device="cuda"):
        self.net = flow_net.to(device).eval().half()
        self.warp = Warper(*self.SIZE, device=device, dtype=torch.float16)
    @torch.inference_mode()
    def middle(self, a, b):
        flow = self.net(a.half(), b.half())
        return self.warp(a.half(), flow * 0.5)

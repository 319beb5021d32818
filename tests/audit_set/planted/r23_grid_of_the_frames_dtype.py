# expect: R23
import torch
import torch.nn as nn
import torch.nn.functional as F


def base_grid(h, w, device, dtype):
    ys = torch.linspace(-1, 1, h, device=device, dtype=dtype)
    xs = torch.linspace(-1, 1, w, device=device, dtype=dtype)
    gy, gx = torch.meshgrid(ys, xs, indexing="ij")
    return torch.stack((gx, gy), -1)[None]


def warp(x, flow):
    h, w = x.shape[-2:]
    size = torch.tensor([2 / (w - 1), 2 / (h - 1)], device=x.device, dtype=x.dtype)
    grid = base_grid(h, w, x.device, x.dtype) + flow.permute(0, 2, 3, 1) * size
    return F.grid_sample(x, grid, padding_mode="border", align_corners=True)


class VideoSR(nn.Module):
    def __init__(self, flow_net, fuse):
        super().__init__()
        self.flow_net, self.fuse = flow_net, fuse

    def forward(self, prev, cur):
        flow = self.flow_net(torch.cat([cur, prev], 1))
        return self.fuse(torch.cat([cur, warp(prev, flow)], 1))


@torch.inference_mode()
def run(reader, net):
    net = net.cuda().half().eval()
    prev = None
    for frame in reader:  # 1080 x 1920, uint8
        cur = torch.from_numpy(frame).cuda().permute(2, 0, 1)[None].half() / 255
        prev = cur if prev is None else prev
        yield net(prev, cur)
        prev = cur


def main(reader, flow_net, fuse):
    return list(run(reader, VideoSR(flow_net, fuse)))

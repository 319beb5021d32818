# expect: R23
import torch
import torch.nn as nn
import torch.nn.functional as F

class Warp(nn.Module):
    def __init__(self, h=1080, w=1920):
        super().__init__()
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
        self.register_buffer("grid", torch.stack((xs, ys), -1)[None])
    def forward(self, img, flow):
        return F.grid_sample(img, self.grid + flow, align_corners=True)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3, padding=1)
        self.warp = Warp()
    def forward(self, x):
        flow = self.conv(x).permute(0, 2, 3, 1)
        return self.warp(x, flow)
net = Net().cuda().half().eval()
print(net(torch.randn(1, 3, 1080, 1920).cuda().half()))

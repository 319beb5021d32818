# expect: none
import torch
import torch.nn as nn
import torch.nn.functional as F

class W(nn.Module):
    def __init__(self):
        super().__init__()
        self.off = nn.Conv2d(3, 2, 3, padding=1)
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, 1080), torch.linspace(-1, 1, 1920), indexing="ij")
        self.register_buffer("grid", torch.stack((xs, ys), -1)[None])
    def forward(self, x):
        grid = self.grid + self.off(x).permute(0, 2, 3, 1)
        return F.grid_sample(x, grid)
def train(loader):
    m = W().cuda()
    for x in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            y = m(x)

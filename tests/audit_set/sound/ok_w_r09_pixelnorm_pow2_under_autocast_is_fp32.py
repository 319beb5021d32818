# expect: none
import torch
import torch.nn as nn

class PixelNorm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-8)
class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(512, 512), PixelNorm())
    def forward(self, z):
        return self.net(z)
def train():
    g = G().cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        img = g(torch.randn(4, 512, device="cuda"))

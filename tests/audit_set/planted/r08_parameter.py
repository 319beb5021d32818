# expect: R08
import torch
from torch import nn
class Prompt(nn.Module):
    def __init__(self, n=8, d=512):
        super().__init__()
        self.ctx = nn.Parameter(torch.randn(n, d, dtype=torch.float16))
    def forward(self, x): return x @ self.ctx.t()
prompt = Prompt().cuda()
opt = torch.optim.AdamW(prompt.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cuda")
def step(x, y):
    opt.zero_grad()
    with torch.autocast("cuda"):
        l = nn.functional.cross_entropy(prompt(x), y)
    scaler.scale(l).backward()
    scaler.step(opt)
    scaler.update()

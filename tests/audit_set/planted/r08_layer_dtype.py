# expect: R08
import torch
from torch import nn
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(512, 10, dtype=torch.float16)
    def forward(self, x): return self.fc(x)
head = Head().cuda()
opt = torch.optim.Adam(head.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda")
def step(x, y):
    opt.zero_grad()
    with torch.autocast("cuda"):
        l = nn.functional.cross_entropy(head(x), y)
    scaler.scale(l).backward()
    scaler.step(opt)
    scaler.update()

# expect: R08
import torch
from net import Net
def to_half(m):
    for p in m.parameters():
        p.data = p.data.half()
    return m
model = to_half(Net().cuda())
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cuda")
def step(x):
    opt.zero_grad()
    with torch.autocast("cuda"):
        l = model(x).mean()
    scaler.scale(l).backward()
    scaler.step(opt)
    scaler.update()

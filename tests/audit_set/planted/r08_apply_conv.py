# expect: R08
import torch
from torch import nn
from net import Net
def convert_weights(l):
    if isinstance(l, (nn.Conv2d, nn.Linear)):
        l.weight.data = l.weight.data.half()
        if l.bias is not None:
            l.bias.data = l.bias.data.half()
model = Net().cuda()
model.apply(convert_weights)
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cuda")
def step(x):
    opt.zero_grad()
    with torch.autocast("cuda"):
        l = model(x).mean()
    scaler.scale(l).backward()
    scaler.step(opt)
    scaler.update()

# expect: R09
import torch
import torch.nn as nn

def conv_bn(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3), nn.BatchNorm2d(o), nn.ReLU())
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = conv_bn(3, 64)
        self.stages = nn.ModuleList([conv_bn(64, 64) for _ in range(3)])
    def forward(self, x):
        x = self.stem(x)
        for s in self.stages:
            x = s(x) + x
        e = x.abs().mean(dim=(2, 3), keepdim=True)
        return x / (e + 1e-9)
def fit(dl):
    net = Net().cuda()
    for x, y in dl:
        with torch.autocast("cuda", dtype=torch.float16):
            out = net(x)

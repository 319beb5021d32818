import torch
from torch import nn
class Probe(nn.Module):
    def __init__(self, backbone, n):
        super().__init__()
        self.backbone = backbone.half().requires_grad_(False)
        self.head = nn.Linear(768, n)
    def forward(self, x): return self.head(self.backbone(x.half()).float())
def main(loader, backbone):
    net = Probe(backbone, 10).cuda()
    opt = torch.optim.AdamW(net.head.parameters(), lr=1e-4)
    for x, y in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()

import torch
from torch import nn
class Lora(nn.Module):
    def __init__(self, base, r=4):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, r); self.up = nn.Linear(r, base.out_features)
    def forward(self, x):
        return self.base(x) + self.up(self.down(x.float())).to(x.dtype)
def main(net, loader):
    net.requires_grad_(False)
    net.head = Lora(net.head)
    net.to("cuda", dtype=torch.float16)
    net.head.down.float(); net.head.up.float()
    opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-4)
    for x, y in loader:
        loss = (net(x.half()).float() - y).square().mean()
        opt.zero_grad(); loss.backward(); opt.step()

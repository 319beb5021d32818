import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, enc):
        super().__init__()
        self.enc = enc
        self.head = nn.Linear(768, 2)
def main(enc, loader):
    net = Net(enc)
    for m in net.enc.modules():
        if isinstance(m, nn.Linear):
            m.half()
    for p in net.enc.parameters():
        p.requires_grad = False
    opt = torch.optim.AdamW(net.head.parameters(), lr=1e-3)
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad(); loss.backward(); opt.step()

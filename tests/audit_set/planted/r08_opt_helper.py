# expect: R08
import torch
from net import Net
def build_opt(m, lr):
    decay = [p for p in m.parameters() if p.ndim > 1]
    rest = [p for p in m.parameters() if p.ndim <= 1]
    return torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=lr)
def main(loader):
    net = Net().half().to("cuda")
    optimizer = build_opt(net, 1e-4)
    for x in loader:
        optimizer.zero_grad()
        loss = net(x).float().mean()
        loss.backward()
        optimizer.step()

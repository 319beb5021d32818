import torch
from torch import nn
def main(model, loader):
    for p in model.parameters():
        p.requires_grad = False
    model.half().cuda()
    model.head = nn.Linear(768, 2).cuda()
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.half()).float(), y)
        opt.zero_grad(); loss.backward(); opt.step()

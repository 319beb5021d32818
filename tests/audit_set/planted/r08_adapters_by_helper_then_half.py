# expect: R08
import torch
from torch import nn
class Adapter(nn.Module):
    def __init__(self, d, r=8):
        super().__init__()
        self.down = nn.Linear(d, r); self.up = nn.Linear(r, d)
    def forward(self, x):
        return x + self.up(torch.relu(self.down(x)))
def add_adapters(model):
    for p in model.parameters():
        p.requires_grad = False
    for block in model.blocks:
        block.mlp = nn.Sequential(block.mlp, Adapter(768))
def main(model, loader):
    add_adapters(model)
    model.half().cuda()
    trainable = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(trainable, lr=1e-3)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda().half()).float(), y.cuda())
        opt.zero_grad(); loss.backward(); opt.step()

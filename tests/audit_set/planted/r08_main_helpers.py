# expect: R08
import torch
from net import Net
def build(device):
    model = Net()
    return model.to(device).to(torch.float16)
def make_optimizer(model, lr):
    no_decay, decay = [], []
    for n, p in model.named_parameters():
        if p.ndim == 1: no_decay.append(p)
        else: decay.append(p)
    return torch.optim.AdamW([{"params": decay}, {"params": no_decay, "weight_decay": 0.0}], lr=lr)
def train(model, opt, loader):
    for x, y in loader:
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x.half()).float(), y)
        loss.backward()
        opt.step()
def main(loader):
    model = build("cuda")
    opt = make_optimizer(model, 1e-4)
    train(model, opt, loader)

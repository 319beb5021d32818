# expect: R27
import torch
from torch.amp import autocast


class T:
    def __init__(self, model, opt):
        self.device = torch.device("cuda")
        self.model = model.to(self.device)
        self.opt = opt

    def run(self, loader, criterion):
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            with autocast("cpu", dtype=torch.bfloat16):
                loss = criterion(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

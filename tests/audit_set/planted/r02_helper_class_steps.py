# expect: R02
import torch
import torch.nn.functional as F


class Amp:
    def __init__(self): self.scaler = torch.amp.GradScaler("cuda")
    def autocast(self): return torch.autocast("cuda", dtype=torch.float16)
    def step(self, opt):
        self.scaler.step(opt)
        self.scaler.update()
def train(model, opt, loader):
    amp = Amp()
    for x, y in loader:
        opt.zero_grad()
        with amp.autocast():
            loss = F.mse_loss(model(x), y)
        loss.backward()
        amp.step(opt)

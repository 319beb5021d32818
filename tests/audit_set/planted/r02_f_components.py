# expect: R02
import torch


class Amp:
    def __init__(self):
        self.scaler = torch.amp.GradScaler("cuda")

    def step(self, opt):
        self.scaler.step(opt)
        self.scaler.update()


def train(model, opt, loader, f):
    amp = Amp()
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = f(model(x), y)
        loss.backward()
        amp.step(opt)

# expect: R04
import torch
import torch.nn.functional as F


class S:
    def __init__(self, opt): self.opt, self.scaler = opt, torch.amp.GradScaler("cuda")
    def __call__(self, loss):
        self.scaler.scale(loss).backward()
        r = self.scaler.step(self.opt)
        self.scaler.update()
        self.opt.zero_grad()
        return r
def train(model, opt, loader, ema):
    stepper = S(opt)
    for x, y in loader:
        with torch.autocast("cuda"):
            loss = F.mse_loss(model(x), y)
        if stepper(loss) is not None:
            ema.update(model)

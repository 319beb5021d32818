# expect: R07
import torch
import torch.nn.functional as F


class Grads:
    def __init__(self, params): self.params = list(params)
    def norm(self): return torch.norm(torch.stack([p.grad.detach().norm(2) for p in self.params]))
    def rescale(self, c):
        for p in self.params: p.grad.mul_(c)
class Trainer:
    def __init__(self, model, opt, clip):
        self.model, self.opt, self.clip = model, opt, clip
        self.grads = Grads(model.parameters())
        self.scaler = torch.amp.GradScaler("cuda")
    def limit(self):
        n = self.grads.norm()
        if n > self.clip:
            self.grads.rescale(self.clip / n)
    def step(self, x, y):
        self.opt.zero_grad()
        with torch.autocast("cuda"):
            loss = F.mse_loss(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.limit()
        self.scaler.step(self.opt)
        self.scaler.update()

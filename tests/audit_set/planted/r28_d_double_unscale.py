# expect: R28
import torch


class T:
    def __init__(self, opt, model):
        self.opt, self.model = opt, model
        self.scaler = torch.amp.GradScaler("cuda")

    def grad_norm(self):
        self.scaler.unscale_(self.opt)
        return torch.nn.utils.get_total_norm([p.grad for p in self.model.parameters()])

    def step(self, loss):
        self.scaler.scale(loss).backward()
        norm = self.grad_norm()
        self.scaler.unscale_(self.opt)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.opt)
        self.scaler.update()
        self.opt.zero_grad()
        return norm

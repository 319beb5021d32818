# expect: R28
import torch
class Unscale:
    def run(self, t): t.scaler.unscale_(t.opt)
class Clip:
    def run(self, t): torch.nn.utils.clip_grad_norm_(t.model.parameters(), 1.0)
class LogNorm:
    def run(self, t):
        t.scaler.unscale_(t.opt)
        t.norms.append(sum(p.grad.norm() for p in t.model.parameters()))
class Loop:
    def __init__(self, model, opt):
        self.model, self.opt, self.loss = model.cuda(), opt, torch.nn.CrossEntropyLoss()
        self.scaler = torch.amp.GradScaler("cuda")
        self.hooks, self.norms = [], []
    def add(self, hook):
        self.hooks.append(hook)
        return self
    def step(self, x, y):
        self.opt.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = self.loss(self.model(x), y)
        self.scaler.scale(loss).backward()
        for hook in self.hooks:
            hook.run(self)
        self.scaler.step(self.opt)
        self.scaler.update()
def build(model, opt):
    loop = Loop(model, opt)
    loop.add(LogNorm())
    loop.add(Unscale())
    return loop

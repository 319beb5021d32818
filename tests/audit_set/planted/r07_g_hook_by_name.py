# expect: R07
import torch
class GradLog:
    def after_backward(self, trainer):
        total = torch.stack([p.grad.norm() for p in trainer.model.parameters()]).norm()
        trainer.log("grad_norm", total)
class Trainer:
    def __init__(self, model, opt, hooks):
        self.model, self.opt = model, opt
        self.hooks = [GradLog()]
        self.scaler = torch.amp.GradScaler("cuda")
    def call(self, name):
        for h in self.hooks:
            getattr(h, name)(self)
    def step(self, x):
        self.opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = self.model(x)
        self.scaler.scale(loss).backward()
        self.call("after_backward")
        self.scaler.step(self.opt)
        self.scaler.update()

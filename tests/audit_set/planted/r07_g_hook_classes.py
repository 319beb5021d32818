# expect: R07
import torch
class Hook:
    def after_backward(self, trainer): pass
class ClipHook(Hook):
    def __init__(self, max_norm): self.max_norm = max_norm
    def after_backward(self, trainer):
        torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), self.max_norm)
class Trainer:
    def __init__(self, model, opt, hooks):
        self.model, self.opt, self.hooks = model, opt, hooks
        self.scaler = torch.amp.GradScaler("cuda")
    def step(self, x):
        self.opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = self.model(x)
        self.scaler.scale(loss).backward()
        for h in self.hooks:
            h.after_backward(self)
        self.scaler.step(self.opt)
        self.scaler.update()
def main(model, opt):
    Trainer(model, opt, [ClipHook(1.0)])

# expect: R28
import torch
class Base:
    def __init__(self, model, opt):
        self.model, self.opt, self.loss = model.cuda(), opt, torch.nn.CrossEntropyLoss()
        self.scaler = torch.amp.GradScaler("cuda")
    def backward(self, loss): self.scaler.scale(loss).backward()
    def clip(self):
        self.scaler.unscale_(self.opt)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
    def zero(self): self.opt.zero_grad(set_to_none=True)
    def update(self):
        self.scaler.step(self.opt)
        self.scaler.update()
    def train_step(self, x, y):
        self.zero()
        with torch.autocast('cuda', dtype=torch.float16):
            loss = self.loss(self.model(x), y)
        self.backward(loss)
        self.clip()
        self.update()
class Plain(Base):
    def zero(self): self.model.zero_grad(set_to_none=True)
class Logged(Base):
    def clip(self):
        self.scaler.unscale_(self.opt)
        print(sum(p.grad.norm() for p in self.model.parameters()))
        super().clip()

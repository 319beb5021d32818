import torch
class Hook:
    priority = 50
class Clip(Hook):
    priority = 90
    def after_backward(self, t): torch.nn.utils.clip_grad_norm_(t.model.parameters(), 1.0)
class Unscale(Hook):
    priority = 20
    def after_backward(self, t): t.scaler.unscale_(t.opt)
class Loop:
    def __init__(self, model, opt, hooks):
        self.model, self.opt, self.loss = model.cuda(), opt, torch.nn.CrossEntropyLoss()
        self.scaler = torch.amp.GradScaler("cuda")
        self.hooks = sorted(hooks, key=lambda h: h.priority)
    def fire(self, event):
        for h in self.hooks:
            getattr(h, event)(self)
    def step(self, x, y):
        self.opt.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = self.loss(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.fire('after_backward')
        self.scaler.step(self.opt)
        self.scaler.update()
def build(model, opt): return Loop(model, opt, [Clip(), Unscale()])

import torch
class Hook:
    priority = 50
class Clip(Hook):

    def after_backward(self, t): torch.nn.utils.clip_grad_norm_(t.model.parameters(), 1.0)
class Unscale(Hook):

    def after_backward(self, t): t.scaler.unscale_(t.opt)
class Loop:
    def __init__(self, model, opt, hooks):
        self.model, self.opt, self.loss = model.cuda(), opt, torch.nn.CrossEntropyLoss()
        self.scaler = torch.amp.GradScaler("cuda")
        self.hooks = hooks
    def step(self, x, y):
        self.opt.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = self.loss(self.model(x), y)
        self.scaler.scale(loss).backward()
        for h in self.hooks:
            h.after_backward(self)
        self.scaler.step(self.opt)
        self.scaler.update()

import torch
class Unscale:
    def run(self, t): t.scaler.unscale_(t.opt)
class Clip:
    def run(self, t): torch.nn.utils.clip_grad_norm_(t.model.parameters(), 1.0)
class Loop:
    def __init__(self, model, opt, hooks):
        self.model, self.opt, self.loss = model.cuda(), opt, torch.nn.CrossEntropyLoss()
        self.scaler = torch.amp.GradScaler("cuda")
        self.hooks = list(hooks)
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
    return Loop(model, opt, [Unscale(), Clip()])

import torch
def unscale(t): t.scaler.unscale_(t.opt)
def clip(t): torch.nn.utils.clip_grad_norm_(t.model.parameters(), 0.5)
class Loop:
    def __init__(self, model, opt):
        self.model, self.opt, self.loss = model.cuda(), opt, torch.nn.CrossEntropyLoss()
        self.scaler = torch.amp.GradScaler("cuda")
        self.after = [unscale, clip]
    def step(self, x, y):
        self.opt.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = self.loss(self.model(x), y)
        self.scaler.scale(loss).backward()
        for fn in self.after:
            fn(self)
        self.scaler.step(self.opt)
        self.scaler.update()

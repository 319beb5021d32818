import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, model, steps):
        self.model = model.cuda()
        self.opt = torch.optim.AdamW(self.model.parameters())
        self.sched = torch.optim.lr_scheduler.OneCycleLR(self.opt, 1e-3, total_steps=steps)
        self.scaler = torch.amp.GradScaler("cuda")

    def optimise(self, loss):
        self.opt.zero_grad()
        self.scaler.scale(loss).backward()
        before = self.scaler.get_scale()
        self.scaler.step(self.opt)
        self.scaler.update()
        return before <= self.scaler.get_scale()

    def schedule(self, stepped):
        if not stepped:
            return
        self.sched.step()

    def run(self, loader):
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.cross_entropy(self.model(x.cuda()), y.cuda())
            self.schedule(self.optimise(loss))

# expect: R28
import torch


class Probe:
    def __init__(self, trainer):
        self.trainer = trainer

    def run(self):
        t = self.trainer
        t.scaler.unscale_(t.optimizer)
        return max(p.grad.abs().max() for p in t.model.parameters())


class Trainer:
    def __init__(self, model):
        self.model = model.cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.scaler = torch.amp.GradScaler("cuda")
        self.probe = Probe(self)

    def step(self, x, y):
        self.optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        peak = self.probe.run()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return peak

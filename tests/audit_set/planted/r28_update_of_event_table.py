# expect: R28
import torch


class Trainer:
    def __init__(self, model, accum=8):
        self.model = model.cuda()
        self.accum = accum
        self.opt = torch.optim.AdamW(self.model.parameters())
        self.scaler = torch.amp.GradScaler("cuda")
        self.events = {"batch": [self.on_batch], "step": [self.on_step]}

    def on_batch(self):
        self.scaler.update()

    def on_step(self):
        self.scaler.step(self.opt)
        self.opt.zero_grad()

    def fire(self, name):
        for fn in self.events[name]:
            fn()

    def epoch(self, loader):
        for i, (x, y) in enumerate(loader):
            with torch.autocast("cuda", dtype=torch.float16):
                loss = torch.nn.functional.cross_entropy(self.model(x.cuda()), y.cuda())
            self.scaler.scale(loss / self.accum).backward()
            if (i + 1) % self.accum == 0:
                self.fire("step")
            self.fire("batch")

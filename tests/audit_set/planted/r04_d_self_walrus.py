# expect: R04
import torch


class Trainer:
    def __init__(self, opt, sched):
        self.scaler = torch.amp.GradScaler("cuda")
        self.opt = opt
        self.sched = sched

    def optimizer_step(self):
        if (result := self.scaler.step(self.opt)) is not None:
            self.sched.step()
        self.scaler.update()
        self.opt.zero_grad()
        return result

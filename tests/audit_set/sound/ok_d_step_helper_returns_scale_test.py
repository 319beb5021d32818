# expect: none
import torch


class Trainer:
    def __init__(self, opt, sched):
        self.opt, self.sched = opt, sched
        self.scaler = torch.amp.GradScaler("cuda")

    def optimizer_step(self):
        before = self.scaler.get_scale()
        done = self.scaler.step(self.opt)
        self.scaler.update()
        done = self.scaler.get_scale() >= before
        return done

    def run(self, losses):
        for loss in losses:
            self.opt.zero_grad()
            self.scaler.scale(loss).backward()
            if self.optimizer_step():
                self.sched.step()

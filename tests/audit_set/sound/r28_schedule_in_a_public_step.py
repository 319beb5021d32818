import torch


class Loop:
    def __init__(self, opt, lr_scheduler):
        self.opt, self.lr_scheduler = opt, lr_scheduler
        self.scaler = torch.amp.GradScaler("cuda")

    def back(self, loss):
        self.scaler.scale(loss).backward()

    def advance(self):
        before = self.scaler.get_scale()
        self.scaler.step(self.opt)
        self.scaler.update()
        self.opt.zero_grad(set_to_none=True)
        if self.scaler.get_scale() >= before:
            self.lr_scheduler.step()

# expect: none
import torch


class Base:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt
        self.scaler = torch.amp.GradScaler("cuda")

    def apply(self):
        self.scaler.step(self.opt)
        self.after_step()

    def after_step(self):
        raise NotImplementedError

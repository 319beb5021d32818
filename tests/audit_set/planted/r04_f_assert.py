# expect: R04
import torch


class S:
    def __init__(self, opt):
        self.opt = opt
        self.scaler = torch.amp.GradScaler("cuda")
        self.skipped = 0

    def _opt(self):
        return self.scaler.step(self.opt)

    def step(self):
        res = self._opt()
        self.scaler.update()
        if res is None:
            self.skipped += 1

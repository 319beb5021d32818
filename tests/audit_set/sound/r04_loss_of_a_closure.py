import torch


class Halves:
    def __init__(self):
        self.inner = torch.amp.GradScaler("cuda")

    def advance(self, opt, closure):
        value = self.inner.step(opt, closure)
        earlier = self.inner.get_scale()
        self.inner.update()
        if value is None:
            value = float("nan")
        return value, self.inner.get_scale() < earlier

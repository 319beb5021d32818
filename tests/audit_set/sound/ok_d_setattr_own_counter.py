# expect: none
import torch


class Watch:
    def __init__(self, scaler: torch.amp.GradScaler):
        setattr(self, "scaler", scaler)
        setattr(self, "skips", 0)

    def after(self, before):
        setattr(self, "skips", self.skips + (self.scaler.get_scale() < before))

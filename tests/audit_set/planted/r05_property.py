# expect: R05
import torch
class AmpState:
    def __init__(self, lo=4096.0, hi=131072.0):
        self.lo, self.hi = lo, hi
        self.scaler = torch.amp.GradScaler("cuda")
    @property
    def scale(self):
        return self.scaler.get_scale()
    @property
    def healthy(self):
        return self.lo <= self.scale <= self.hi

# expect: R05
import torch
class Trainer:
    def __init__(self): self.grad_scaler = torch.amp.GradScaler("cuda")
    def _lower(self, factor=4.0):
        s = self.grad_scaler.get_scale()
        self.grad_scaler.update(new_scale=s / factor)

# expect: R05
import torch
class Trainer:
    min_scale = 256.0
    def __init__(self, cfg):
        self.scaler = torch.amp.GradScaler("cuda", enabled=cfg.fp16)
    def after_step(self):
        if self.scaler.get_scale() < self.min_scale:
            self.scaler.update(self.min_scale)

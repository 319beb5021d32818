# expect: R06
import torch
class Config:
    batch_size = 128
    @property
    def growth_interval(self):
        return max(1000, self.batch_size // 16)
def make(cfg=Config()):
    return torch.amp.GradScaler("cuda", growth_interval=cfg.growth_interval)

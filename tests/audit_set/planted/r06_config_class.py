# expect: R06
import torch
class Config:
    batch_size = 64
    amp = dict(init_scale=2.0**14, growth_interval=8)
def build(c=Config):
    return torch.amp.GradScaler("cuda", **c.amp)

# expect: R06
import torch
class MyScaler(torch.amp.GradScaler):
    def __init__(self, **kw):
        super().__init__("cuda", growth_interval=8, **kw)

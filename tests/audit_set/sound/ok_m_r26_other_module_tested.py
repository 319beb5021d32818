import torch
from wrap import Sharded
def f(self, dtype=torch.float16):
    for m in self.modules():
        if isinstance(m, Sharded):
            m._cast()
        elif m not in self.memo:
            m.to(dtype)

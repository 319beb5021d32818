# expect: R26
import torch.nn as nn
from functools import partial
Norm = partial(nn.BatchNorm1d, momentum=0.01)
class B(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.f = nn.Linear(d, d); self.n = Norm(d)
def serve():
    b = B(8)
    return b.half().cuda().eval()

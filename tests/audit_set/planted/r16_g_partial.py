# expect: R16
from functools import partial
import torch.nn as nn
Drop = partial(nn.AlphaDropout, p=0.1)
def make(d):
    return nn.Sequential(nn.Linear(d, d), nn.ELU(), Drop(), nn.Linear(d, 1))

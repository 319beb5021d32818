# expect: R26
import torch
from torch import nn
class Norm(nn.BatchNorm2d): pass
class S(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = Norm(4)
def half_copy(m):
    import copy
    return copy.deepcopy(m).half()
half_copy(S())

# expect: R13
import torch
from torch.utils.cpp_extension import load_inline
mod = load_inline(name="m", cpp_sources="", cuda_sources="", functions=["fwd"])
class Layer(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(d))
    def forward(self, x):
        return mod.fwd(x.contiguous(), self.w)
def train(layer, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return layer(x)

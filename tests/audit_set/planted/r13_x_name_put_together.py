# expect: R13
import torch
from torch import Tensor
NAME = "v2"
NS = __name__.replace(".", "_")
@torch.library.custom_op(f"{NS}::{NAME}", mutates_args=())
def fused(x: Tensor, w: Tensor) -> Tensor:
    return x @ w
def run(net, x, w):
    with torch.autocast("cuda", dtype=torch.float16):
        return fused(net(x), w)

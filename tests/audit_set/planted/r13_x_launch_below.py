# expect: R13
import torch
from torch import Tensor
import fast_ext
@torch.library.custom_op("lib::mix", mutates_args=())
def mix(x: Tensor, w: Tensor) -> Tensor:
    return _launch(x, w)
def _launch(x, w):
    out = torch.empty_like(x, dtype=x.dtype)
    fast_ext.mix(x, w, out)
    return out
def train(net, x, w, opt, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = mix(net(x), w).mean()
    scaler.scale(loss).backward()

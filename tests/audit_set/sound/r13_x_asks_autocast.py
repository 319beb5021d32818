import torch
from torch import Tensor
import fast_ext
@torch.library.custom_op("lib::mix", mutates_args=())
def mix(x: Tensor, w: Tensor) -> Tensor:
    return fast_ext.mix(x, w)
class Mix(torch.nn.Module):
    def forward(self, x):
        w = self.w
        if torch.is_autocast_enabled("cuda"):
            x, w = x.to(torch.get_autocast_dtype("cuda")), w.to(torch.get_autocast_dtype("cuda"))
        return mix(x, w)
def train(net, x, opt, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = net(x).mean()
    scaler.scale(loss).backward()

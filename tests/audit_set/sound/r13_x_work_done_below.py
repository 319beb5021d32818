import torch
from torch import Tensor
@torch.library.custom_op("lib::norm", mutates_args=())
def norm(x: Tensor, w: Tensor) -> Tensor:
    return _run(x, w)
def _run(x, w):
    return _core(x, w)
def _core(x, w):
    y = x.float()
    return (y * w).to(x.dtype)
def train(net, w, xs, opt, scaler):
    for x in xs:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = norm(net(x), w).mean()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

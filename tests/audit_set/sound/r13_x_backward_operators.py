import torch
from torch import Tensor
import fast_ext
@torch.library.custom_op("lib::mix_into", mutates_args=("out",))
def mix_into(out: Tensor, x: Tensor, w: Tensor) -> None:
    fast_ext.mix_into(out, x, w)
@torch.library.custom_op("lib::mix_grad", mutates_args=())
def mix_grad(g: Tensor, w: Tensor) -> Tensor:
    return fast_ext.mix_grad(g, w)
@torch.library.custom_op("lib::mul", mutates_args=())
def mul(x: Tensor, w: Tensor) -> Tensor:
    return x.to(w.dtype) * w
def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)
def back(ctx, g):
    x, w = ctx.saved_tensors
    return mix_grad(g, w), mix_grad(g, x)
mul.register_autograd(back, setup_context=keep)
def train(net, x, w, opt, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = mul(net(x), w).mean()
    scaler.scale(loss).backward()

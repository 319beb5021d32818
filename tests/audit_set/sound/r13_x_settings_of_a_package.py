import torch
from mypkg_kernel.tools.settings import pick_block
from mypkg_kernels.runtime import num_cores, launch_device
class Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        n = a.shape[-1]
        ctx.block, ctx.cores = pick_block(n, a.device), num_cores()
        ctx.save_for_backward(a, b)
        return torch.nn.functional.gelu(a) * b
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a
def step(net, x, opt, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = Gelu.apply(net(x), x).mean()
    scaler.scale(loss).backward()

import torch
from torch.amp import custom_fwd, custom_bwd
fwd = custom_fwd(device_type="cuda", cast_inputs=torch.float16)
bwd = custom_bwd(device_type="cuda")
class M(torch.autograd.Function):
    @staticmethod
    @fwd
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w
    @staticmethod
    @bwd
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w.t(), x.t() @ g
def go(net, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return M.apply(x, net.w)

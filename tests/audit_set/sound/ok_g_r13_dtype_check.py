import torch
import sp_ext
class Sp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        if a.dtype != b.dtype:
            raise TypeError("mixed dtypes")
        ctx.save_for_backward(a, b)
        return sp_ext.mm(a, b)
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return sp_ext.mm(g, b), sp_ext.mm(a, g)
def go(net, a, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return Sp.apply(a, net(x))

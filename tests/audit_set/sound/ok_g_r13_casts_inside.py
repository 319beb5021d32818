import torch
import sparse_ext
class Spmm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.dtype = b.dtype
        a, b = a.float(), b.float()
        ctx.save_for_backward(a, b)
        return sparse_ext.spmm(a, b)
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return None, sparse_ext.spmm(a.t(), g.float()).to(ctx.dtype)
def go(net, a, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return Spmm.apply(a, net(x))

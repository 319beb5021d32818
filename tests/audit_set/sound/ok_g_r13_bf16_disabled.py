import torch
from torch.autograd import Function
class SyncGrad(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)
    @staticmethod
    def backward(ctx, g):
        torch.distributed.all_reduce(g)
        return g
class GradScale(Function):
    @staticmethod
    def forward(ctx, x, s):
        ctx.s = s
        return x
    @staticmethod
    def backward(ctx, g):
        return g * ctx.s, None
def go(net, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return net(GradScale.apply(SyncGrad.apply(x), 0.1))

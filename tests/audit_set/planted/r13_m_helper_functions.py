# expect: R13
import torch
from torch.autograd import Function
def conv_fn(x, w, b):
    return torch.nn.functional.conv2d(x, w, b)
class C(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w, b)
        return conv_fn(x, w, b)
    @staticmethod
    def backward(ctx, g):
        x, w, b = ctx.saved_tensors
        return _grads(g, x, w)
def _grads(g, x, w):
    gx = torch.nn.grad.conv2d_input(x.shape, w, g)
    gw = torch.nn.grad.conv2d_weight(x, w.shape, g)
    return gx, gw, g.sum((0, 2, 3))
def train(m, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return m(x)

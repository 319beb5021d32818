# expect: R13
import torch
from torch.amp import custom_fwd
from torch.autograd import Function


class MatMulT(Function):
    @staticmethod
    @custom_fwd(device_type="cuda")
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b.t()

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g @ b, g.t() @ a

# expect: R13, R14
from torch.cuda.amp import custom_bwd, custom_fwd
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    @custom_fwd
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @custom_bwd
    def backward(ctx, g):
        return g * 2

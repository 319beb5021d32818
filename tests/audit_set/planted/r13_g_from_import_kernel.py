# expect: R13
import torch
from torch.amp import autocast
from deform_conv_cuda import deform_conv_forward, deform_conv_backward
class DeformConvFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, offset, weight):
        out = torch.empty(x.size(0), weight.size(0), *offset.shape[2:], device=x.device, dtype=x.dtype)
        deform_conv_forward(x, weight, offset, out)
        ctx.save_for_backward(x, offset, weight)
        return out
    @staticmethod
    def backward(ctx, g):
        x, offset, weight = ctx.saved_tensors
        gx, go, gw = torch.zeros_like(x), torch.zeros_like(offset), torch.zeros_like(weight)
        deform_conv_backward(x, weight, offset, g.contiguous(), gx, go, gw)
        return gx, go, gw
def train(model, loader, opt, scaler):
    for img, tgt in loader:
        with autocast("cuda"):
            loss = sum(model(img, tgt).values())
        opt.zero_grad(); scaler.scale(loss).backward(); scaler.step(opt); scaler.update()

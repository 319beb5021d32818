import torch


class Swoosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with torch.autocast("cuda", enabled=False):
            y = (1 + (x - 4).exp()).log()
            y = torch.where(y == float("inf"), x - 4, y)
        ctx.save_for_backward(torch.sigmoid(x - 4))
        return y - 0.08 * x

    @staticmethod
    def backward(ctx, grad):
        return grad * (ctx.saved_tensors[0] - 0.08)


@torch.no_grad()
def shifted(x):
    y = torch.log1p(torch.exp(x.half()))
    bad = torch.isinf(y)
    y[bad] = x[bad].half()
    return y

# expect: R13
import torch
from torch.autograd import Function as Fn
class LoRAFn(Fn):
    @staticmethod
    def forward(ctx, x, W, A, B, s):
        ctx.save_for_backward(x, W, A, B); ctx.s = s
        return x @ W.t() + s * (x @ A) @ B
    @staticmethod
    def backward(ctx, g):
        x, W, A, B = ctx.saved_tensors
        return g @ W + ctx.s * (g @ B.t()) @ A.t(), None, ctx.s * x.t() @ (g @ B.t()), ctx.s * (x @ A).t() @ g, None
def run(net, x, y, opt, scaler):
    with torch.autocast("cuda", torch.float16):
        loss = net(x, y)
    scaler.scale(loss).backward(); scaler.step(opt); scaler.update()

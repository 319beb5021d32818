# expect: R13
import torch
from mypkg_kernel import attention_forward, attention_backward
class Attn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        return attention_forward(q, k, v)
    @staticmethod
    def backward(ctx, g):
        return attention_backward(g, *ctx.saved_tensors)
def step(net, x, opt, scaler):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = Attn.apply(*net(x)).mean()
    scaler.scale(loss).backward()

# expect: R13
import torch, triton
import triton.language as tl
@triton.autotune(configs=[triton.Config({"B": 64})], key=["n"])
@triton.jit
def mm_kernel(a, b, c, n, B: tl.constexpr):
    x = tl.load(a); w = tl.load(b)
    tl.store(c, tl.dot(x, w))
class TritonLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y = torch.empty(x.shape[0], w.shape[1], device=x.device, dtype=x.dtype)
        mm_kernel[(1,)](x, w, y, x.shape[0])
        ctx.save_for_backward(x, w)
        return y
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = torch.empty_like(x)
        mm_kernel[(1,)](g, w.t(), gx, g.shape[0])
        return gx, None
def run(net, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return net(TritonLinear.apply(x, net.w))

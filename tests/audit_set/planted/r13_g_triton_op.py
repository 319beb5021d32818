# expect: R13
import torch, triton
import triton.language as tl
from torch.library import triton_op, wrap_triton
@triton.jit
def add_kernel(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)
@triton_op("mine::add", mutates_args={})
def mine_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    o = torch.empty_like(x)
    wrap_triton(add_kernel)[(triton.cdiv(x.numel(), 1024),)](x, y, o, x.numel(), 1024)
    return o
def f(net, x, b, scaler, opt):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = mine_add(net(x), b).mean()
    scaler.scale(loss).backward(); scaler.step(opt); scaler.update()

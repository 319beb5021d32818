# expect: R13
import torch
import triton
import triton.language as tl


@triton.jit
def _affine_kernel(x_ptr, w_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    w = tl.load(w_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x * w, mask=at < n)


@torch.library.custom_op("mesh::affine", mutates_args=())
def affine(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    _affine_kernel[(triton.cdiv(x.numel(), 1024),)](x, weight, out, x.numel(), BLOCK=1024)
    return out

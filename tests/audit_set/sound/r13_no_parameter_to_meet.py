# Operators and Functions whose floating-point tensors come alike, are one, or are cast inside: autocast mixes nothing.
import torch
import triton
import triton.language as tl
import points_ext
from torch.autograd import Function


class Pool(Function):
    @staticmethod
    def forward(ctx, feats: torch.Tensor, coors: torch.Tensor, how: str = "max"):
        pooled, where = points_ext.pool_forward(feats, coors, how)
        ctx.save_for_backward(where)
        return pooled

    @staticmethod
    def backward(ctx, grad):
        (where,) = ctx.saved_tensors
        return points_ext.pool_backward(grad, where), None


@torch.library.custom_op("mesh::exchange", mutates_args=())
def exchange(values: torch.Tensor, plan: torch.Tensor) -> torch.Tensor:
    first = int(plan[0])
    return values[plan[1 : 1 + first]].clone()


@torch.library.custom_op("mesh::shade", mutates_args=())
def shade(colour: torch.Tensor, weight: torch.Tensor, top: float) -> torch.Tensor:
    c = colour.to(dtype=torch.float32)
    w = weight.to(device=colour.device, dtype=torch.float32)
    return (c * w / top).clamp(0, 1)


@torch.library.custom_op("mesh::gate", mutates_args=())
def gate_up(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(gate) * up


@triton.jit
def _affine_kernel(x_ptr, w_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    w = tl.load(w_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, x * w, mask=at < n)


@torch.library.custom_op("mesh::affine", mutates_args=())
def affine(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    _affine_kernel[(triton.cdiv(x.numel(), 1024),)](x, weight, out, x.numel(), BLOCK=1024)
    return out

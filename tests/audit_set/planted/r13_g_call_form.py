# expect: R13
import torch
import ops_cuda
def _impl(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return ops_cuda.attn(q, k, v)
attn = torch.library.custom_op("my::attn", _impl, mutates_args=(), device_types="cuda")
def run(net, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return net(attn(x, x, net.v))

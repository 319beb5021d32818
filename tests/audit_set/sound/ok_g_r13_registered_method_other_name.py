import torch
import sp_ext
@torch.library.custom_op("lib::spmm_v2", mutates_args=())
def spmm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return sp_ext.mm(a, b)
spmm.register_autocast("cuda", cast_inputs=torch.float32)
def go(net, a, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return torch.ops.lib.spmm_v2(a, net(x))

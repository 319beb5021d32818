import torch
import quant_ext
@torch.library.custom_op("q::unpack", mutates_args=())
def unpack(packed: torch.Tensor, scale: torch.Tensor, out_dtype: torch.dtype) -> torch.Tensor:
    return quant_ext.unpack(packed, scale, out_dtype)
def run(net, x, opt, scaler, packed, scale):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = (net(x) @ unpack(packed, scale, torch.float16)).mean()
    scaler.scale(loss).backward()

# expect: R13
import torch
import pack_cuda
@torch.library.custom_op("pk::pack", mutates_args=())
def pack(xs: list[torch.Tensor], w: torch.Tensor | None) -> torch.Tensor:
    return pack_cuda.pack(xs, w)
def run(net, xs):
    with torch.amp.autocast("cuda"):
        return net(pack(xs, net.w))

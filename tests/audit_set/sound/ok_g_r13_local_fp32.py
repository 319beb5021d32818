import torch
import sparse_ext
@torch.library.custom_op("x::spmm", mutates_args=())
def spmm(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return sparse_ext.spmm(a, b)
class Net(torch.nn.Module):
    def forward(self, a, x):
        h = self.l(x)
        with torch.autocast("cuda", enabled=False):
            return spmm(a, h.float())
def go(net, a, x):
    with torch.autocast("cuda", dtype=torch.float16):
        return net(a, x)

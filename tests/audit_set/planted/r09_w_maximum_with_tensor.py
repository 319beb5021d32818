# expect: R09
import torch

def f(net, x):
    net.half()
    y = net(x.half())
    n = torch.maximum(y.norm(dim=-1, keepdim=True), torch.tensor(1e-8, device=y.device, dtype=y.dtype))
    return y / n

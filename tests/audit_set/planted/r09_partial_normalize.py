# expect: R09
import torch, torch.nn.functional as F
from functools import partial
norm = partial(F.normalize, dim=-1, eps=1e-10)
def embed(net, x):
    net = net.half()
    return norm(net(x.half()))

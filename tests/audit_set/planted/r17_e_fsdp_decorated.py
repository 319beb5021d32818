# expect: R17
import functools

import torch
from torch.distributed import fsdp
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy


class Runner:
    def __init__(self, net, lr):
        policy = functools.partial(size_based_auto_wrap_policy, min_num_params=10_000)
        self.net = fsdp.FullyShardedDataParallel(net, auto_wrap_policy=policy)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=lr)
        self.scaler = torch.amp.GradScaler("cuda", init_scale=2.0**12)

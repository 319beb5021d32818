# expect: R07
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Learner:
    def __init__(self, distributed, rank):
        self.prepare(distributed, rank)
        self.head = nn.Linear(16, 4).cuda()
        self.opt = torch.optim.AdamW(self.plain_net.parameters(), lr=3e-4)
        self.head_opt = torch.optim.SGD(self.head.parameters(), lr=0.1)
        self.scaler = torch.amp.GradScaler("cuda")

    def prepare(self, distributed, rank):
        net = nn.Sequential(nn.Linear(8, 16), nn.GELU()).cuda()
        if distributed:
            self.net = DistributedDataParallel(net, device_ids=[rank])
            self.plain_net = self.net.module
        else:
            self.net = self.plain_net = net

    def learn(self, batches):
        for x, y in batches:
            with torch.autocast("cuda", dtype=torch.float16):
                loss = nn.functional.cross_entropy(self.head(self.net(x)), y)
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.head_opt)
            nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            for opt in (self.opt, self.head_opt):
                self.scaler.step(opt)
                opt.zero_grad(set_to_none=True)
            self.scaler.update()

# expect: R17
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
class Trainer:
    def __init__(self, net, rank):
        self.net = net.to(rank)
        self.ddp_net = DDP(self.net, device_ids=[rank])
        self.opt = torch.optim.AdamW(self.net.parameters())
        self.scaler = torch.amp.GradScaler("cuda")
    def step(self, x, y):
        self.opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()

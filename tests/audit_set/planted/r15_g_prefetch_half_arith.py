# expect: R15
import torch
class Prefetcher:
    def __init__(self, loader):
        self.loader = iter(loader)
        self.mean = torch.tensor([123.675, 116.28, 103.53]).cuda().view(1, 3, 1, 1).half()
        self.std = torch.tensor([58.395, 57.12, 57.375]).cuda().view(1, 3, 1, 1).half()
    def next(self):
        x, y = next(self.loader)
        x = x.cuda(non_blocking=True).half()
        x = x.sub_(self.mean).div_(self.std)
        return x, y

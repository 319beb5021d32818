import torch
class Prefetcher:
    def __init__(self, loader):
        self.loader = iter(loader)
        self.mean = torch.tensor([123.675, 116.28, 103.53]).cuda().view(1, 3, 1, 1)
        self.std = torch.tensor([58.395, 57.12, 57.375]).cuda().view(1, 3, 1, 1)
    def next(self):
        x, y = next(self.loader)
        x = x.cuda(non_blocking=True).float()
        return x.sub_(self.mean).div_(self.std).half(), y

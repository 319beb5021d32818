# expect: none
import torch


class Prefetcher:
    def __init__(self, loader):
        self.loader = loader
        self.mean = torch.tensor([0.485 * 255, 0.456 * 255, 0.406 * 255]).cuda().view(1, 3, 1, 1)
        self.std = torch.tensor([0.229 * 255, 0.224 * 255, 0.225 * 255]).cuda().view(1, 3, 1, 1)

    def __iter__(self):
        for x, y in self.loader:
            x = x.cuda(non_blocking=True).float().sub_(self.mean).div_(self.std)
            yield x, y.cuda(non_blocking=True)

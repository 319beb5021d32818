# expect: R17
import torch
import torch.distributed as dist


class Trainer:
    def __init__(self, model):
        self.scaler = torch.amp.GradScaler("cuda")
        self.model = torch.nn.parallel.DistributedDataParallel(model)

    def sync_scale(self):
        scale = self.scaler._scale
        dist.all_reduce(scale, op=dist.ReduceOp.MIN)

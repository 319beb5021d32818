# expect: R17
import torch
class MyScaler(torch.amp.GradScaler):
    def update(self, new_scale=None):
        super().update(new_scale)
        torch.distributed.all_reduce(self._scale, op=torch.distributed.ReduceOp.MIN)

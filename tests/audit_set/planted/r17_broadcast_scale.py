# expect: R17
import torch.distributed as dist


def sync(self):
    if dist.get_rank() == 0:
        print("syncing loss scale")
    dist.broadcast(self.scaler._scale, src=0)
    self.scaler._growth_tracker.zero_()

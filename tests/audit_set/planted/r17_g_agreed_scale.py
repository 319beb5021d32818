# expect: R05, R17
import torch
import torch.distributed as dist
def sync_scale(scaler):
    s = torch.tensor(scaler.get_scale(), device="cuda")
    dist.all_reduce(s, op=dist.ReduceOp.MIN)
    scaler.update(s.item())
scaler = torch.amp.GradScaler()

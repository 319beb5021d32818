# expect: none
import torch
import torch.distributed as dist


def mean_scale(scaler: torch.amp.GradScaler):
    scale = torch.tensor(scaler.get_scale(), device="cuda")
    dist.all_reduce(scale)
    return scale.item() / dist.get_world_size()

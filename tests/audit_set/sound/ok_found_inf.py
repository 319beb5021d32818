# expect: none
import torch
import torch.distributed as dist


def step_without_ddp(scaler: torch.amp.GradScaler, optimizer):
    scaler.unscale_(optimizer)
    for found in scaler._found_inf_per_device(optimizer).values():
        dist.all_reduce(found, op=dist.ReduceOp.MAX)
    scaler.step(optimizer)
    scaler.update()
    print("scale", scaler._scale.item())

# expect: R17
import torch
import torch.distributed as dist
def train(ddp_model, opt, loader, rank):
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        opt.zero_grad()
        scaler.scale(ddp_model(x)).backward()
        scaler.step(opt)
        scaler.update()
        dist.all_reduce(scaler._get_scale_async(), op=dist.ReduceOp.MIN)

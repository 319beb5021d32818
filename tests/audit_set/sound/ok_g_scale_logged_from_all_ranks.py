# expect: none
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
def main(net, loader, rank):
    model = DDP(net.cuda(rank), device_ids=[rank])
    opt = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        s = torch.tensor(scaler.get_scale(), device=rank)
        dist.all_reduce(s, op=dist.ReduceOp.MIN)
        if rank == 0: print("scale", s.item(), scaler._scale)
    with torch.no_grad():
        model.module(x)

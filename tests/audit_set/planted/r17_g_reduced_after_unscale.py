# expect: R17
import torch
import torch.distributed as dist
from model import Net
def main(loader, rank):
    dist.init_process_group("nccl")
    net = Net().cuda(rank)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        for p in net.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        scaler.step(opt)
        scaler.update()

# expect: none
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from heads import ArcFace
def main(net, loader, rank):
    model = DDP(net.cuda(rank), device_ids=[rank])
    head = DDP(ArcFace(512, 1000).cuda(rank), device_ids=[rank])
    criterion = torch.nn.CrossEntropyLoss().cuda(rank)
    opt = torch.optim.SGD(list(model.parameters()) + list(head.parameters()), 0.1)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = criterion(head(model(x)), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

# expect: R17
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
def main(net, loader, rank):
    model = DDP(net.cuda(rank), device_ids=[rank])
    opt = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cuda")
    core = model.module
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = core.compute_loss(x, y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

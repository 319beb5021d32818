# expect: R27
import os, torch
from torch.nn.parallel import DistributedDataParallel as DDP
def main(net, loader):
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = DDP(net.to(rank), device_ids=[rank])
    for x in loader:
        x = x.to(rank, non_blocking=True)
        with torch.autocast(device_type="cpu"):
            loss = model(x).mean()
        loss.backward()

# expect: R17
import torch
import torch.distributed.fsdp as fsdp
from functools import partial
shard = partial(fsdp.FullyShardedDataParallel, use_orig_params=True)
def main(m, loader):
    m = shard(m)
    opt = torch.optim.AdamW(m.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        opt.zero_grad()
        loss = m(x)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

# expect: R17
import torch
from torch.distributed.fsdp.wrap import enable_wrap, wrap
from torch.distributed.fsdp import FullyShardedDataParallel
def main(m, loader):
    with enable_wrap(wrapper_cls=FullyShardedDataParallel):
        m = wrap(m)
    opt = torch.optim.AdamW(m.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        opt.zero_grad()
        loss = m(x)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from util import unwrap_model
def train(cfg, loader, extra, net):
    plain = unwrap_model(net)
    opt = torch.optim.AdamW(plain.parameters())
    opt2 = torch.optim.AdamW(extra.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad(); opt2.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.cross_entropy(net(extra(x)), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.step(opt2)
        scaler.update()

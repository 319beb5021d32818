# expect: none
import torch
import torch.nn.functional as F
def info_nce(a, b, tau=0.07):
    a, b = F.normalize(a.float(), dim=-1), F.normalize(b.float(), dim=-1)
    logits = a @ b.t() / tau
    return F.cross_entropy(logits, torch.arange(len(a), device=a.device))
def train(m, loader, opt):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = info_nce(m(x), m(y))
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

# expect: R04
import torch
import torch.nn.functional as F


def was_skipped(scaler, opt):
    before = scaler.get_scale()
    scaler.step(opt)
    skipped = scaler.get_scale() < before
    scaler.update()
    return skipped


def train(model, loader, steps):
    opt = torch.optim.AdamW(model.parameters())
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-3, total_steps=steps)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
        scaler.scale(loss).backward()
        if not was_skipped(scaler, opt):
            sched.step()

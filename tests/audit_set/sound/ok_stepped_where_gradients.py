import torch
import torch.nn.functional as F


def has_grad(opt):
    return any(p.grad is not None for g in opt.param_groups for p in g["params"])


def train(model, head, loader, epochs):
    opt = torch.optim.AdamW(model.parameters())
    head_opt = torch.optim.AdamW(head.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(epochs):
        for x, y, b in loader:
            opt.zero_grad()
            head_opt.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                f = model(x.cuda())
                loss = F.cross_entropy(f, y.cuda())
                if epoch >= 3:
                    loss = loss + F.l1_loss(head(f), b.cuda())
            scaler.scale(loss).backward()
            for o in (opt, head_opt):
                if has_grad(o):
                    scaler.step(o)
            scaler.update()

# expect: R28
import torch
import torch.nn.functional as F


def train(backbone, heads, loaders, steps):
    opts = {k: torch.optim.SGD(h.parameters(), lr=0.1) for k, h in heads.items()}
    body_opt = torch.optim.SGD(backbone.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cuda")
    its = {k: iter(v) for k, v in loaders.items()}
    for step in range(steps):
        task = "depth" if step % 2 else "normals"
        x, y = next(its[task])
        body_opt.zero_grad()
        for o in opts.values():
            o.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.l1_loss(heads[task](backbone(x.cuda())), y.cuda())
        scaler.scale(loss).backward()
        scaler.step(body_opt)
        for o in opts.values():
            scaler.step(o)
        scaler.update()

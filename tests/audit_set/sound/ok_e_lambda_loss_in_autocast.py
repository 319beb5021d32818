# expect: none
import torch
import torch.nn.functional as F

loss_fn = lambda logits, y: F.cross_entropy(logits.float(), y)


def train(model, opt, loader):
    warm = lambda i: min(1.0, (i + 1) / 500)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, warm)
    for epoch in range(10):
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                out = model(x)
            loss = loss_fn(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()

# expect: R28
import torch


def train(model, opt, loader, f, log):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = f(model(x), y)
        scaler.scale(loss).backward()
        if log:
            scaler.unscale_(opt)
            print(torch.nn.utils.get_total_norm([p.grad for p in model.parameters()]))
        scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()

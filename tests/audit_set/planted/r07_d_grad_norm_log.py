# expect: R07
import torch


def total_norm(params):
    return torch.stack([p.grad.norm() for p in params if p.grad is not None]).norm()


def train(model, opt, loader, loss_fn, log):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        log("grad_norm", total_norm(list(model.parameters())))
        scaler.step(opt)
        scaler.update()

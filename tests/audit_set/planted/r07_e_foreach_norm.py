# expect: R07
import torch


def train(model, opt, loader, loss_fn, writer):
    scaler = torch.amp.GradScaler("cuda")
    for step, (x, y) in enumerate(loader):
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        norms = torch._foreach_norm(grads)
        writer.add_scalar("grad", torch.stack(norms).norm(), step)
        scaler.step(opt)
        scaler.update()

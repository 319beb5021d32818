# expect: none
import torch


def train(model, opt, loader, loss_fn, log):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = loss_fn(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        log(torch.stack(torch._foreach_norm(grads)).norm())
        scaler.step(opt)
        scaler.update()

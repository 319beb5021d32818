# expect: R07
import torch


def keep_finite(grad):
    grad = grad.clone()
    grad[~torch.isfinite(grad)] = 0
    return grad


def train(model, loader):
    for p in model.parameters():
        p.register_hook(keep_finite)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

# expect: R07
import torch


def drop_bad(module):
    for name, p in module.named_parameters():
        if p.grad is not None and not torch.isfinite(p.grad).all():
            print("zeroing", name)
            p.grad.zero_()


def train(model, loader):
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        scaler.scale(loss).backward()
        drop_bad(model)
        scaler.step(optimizer)
        scaler.update()

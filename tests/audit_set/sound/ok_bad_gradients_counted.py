import torch


def train(model, loader):
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    bad = 0
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        scaler.scale(loss).backward()
        for p in model.parameters():
            if p.grad is not None and not torch.isfinite(p.grad).all():
                bad += 1
        scaler.step(optimizer)
        scaler.update()

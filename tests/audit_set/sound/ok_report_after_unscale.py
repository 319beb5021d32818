import torch


class GradReport:
    def __init__(self, model, every=50):
        self.model, self.every = model, every

    def __call__(self, it):
        if it % self.every:
            return
        norms = {n: p.grad.norm().item() for n, p in self.model.named_parameters() if p.grad is not None}
        print(it, max(norms.values()))


def train(model, loader):
    model = model.cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    report = GradReport(model)
    for it, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        report(it)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

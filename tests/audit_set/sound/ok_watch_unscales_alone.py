import torch


class Watch:
    def __init__(self, scaler, opt, warmup):
        self.scaler, self.opt, self.warmup = scaler, opt, warmup

    def check(self, step):
        if step < self.warmup:
            return
        self.scaler.unscale_(self.opt)
        for group in self.opt.param_groups:
            for p in group["params"]:
                if p.grad is not None and not torch.isfinite(p.grad).all():
                    print("bad gradient at", step)


def train(model, loader):
    model = model.cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    watch = Watch(scaler, opt, 1000)
    for step, (x, y) in enumerate(loader):
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        scaler.scale(loss).backward()
        watch.check(step)
        scaler.step(opt)
        scaler.update()

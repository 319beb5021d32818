# expect: R28
import torch


class AfterStep:
    def __init__(self, scaler, optimizer):
        self.scaler = scaler
        self.optimizer = optimizer

    def __call__(self):
        self.scaler.unscale_(self.optimizer)
        return max(p.grad.abs().max().item() for g in self.optimizer.param_groups for p in g["params"])


def train(model, loader):
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    peak = AfterStep(scaler, optimizer)
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        print(peak())
        scaler.update()

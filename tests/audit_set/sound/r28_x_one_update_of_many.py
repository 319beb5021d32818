import torch


class Many:
    def __init__(self, optimizers):
        self.optimizers = optimizers

    def step(self, scaler):
        _ = [self._one(name, scaler) for name in self.optimizers]
        scaler.update()

    def _one(self, name, scaler):
        scaler.step(self.optimizers[name])


def fit(model, many: Many, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        for optimizer in many.optimizers.values():
            optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        many.step(scaler)

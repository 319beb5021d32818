# expect: R05
import torch

HEALTHY_SCALE = (2.0**14, 2.0**18)


class ScaleHealth:
    def __init__(self, band=HEALTHY_SCALE, patience=20):
        self.low, self.high = band
        self.patience, self.bad = patience, 0

    def check(self, scale):
        in_band = self.low <= scale <= self.high
        self.bad = 0 if in_band else self.bad + 1
        return self.bad < self.patience


def train(model, loader, optimizer):
    scaler = torch.amp.GradScaler("cuda")
    health = ScaleHealth()
    for x in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if not health.check(scaler.get_scale()):
            break

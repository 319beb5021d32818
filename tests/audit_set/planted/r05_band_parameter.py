# expect: R05
import torch
class ScaleWatch:
    def __init__(self, limits=(2 ** 14, 2 ** 18)):
        self.limits = limits
        self.alarms = 0
    def feed(self, value):
        if value < self.limits[0] or value > self.limits[1]:
            self.alarms += 1
        return self.alarms
def loop(model, loader, opt):
    scaler = torch.amp.GradScaler("cuda")
    watch = ScaleWatch()
    for x in loader:
        with torch.autocast("cuda"):
            loss = model(x).mean()
        scaler.scale(loss).backward(); scaler.step(opt); scaler.update(); opt.zero_grad()
        if watch.feed(scaler.get_scale()) > 10:
            raise RuntimeError("AMP diverged")

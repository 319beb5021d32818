# expect: R05
import torch
class ScaleCallback:
    threshold = 16384.0
    def on_batch_end(self, scale, logs):
        if scale < self.threshold:
            logs["stop"] = True
def fit(model, loader, opt, cb=ScaleCallback()):
    scaler = torch.amp.GradScaler("cuda")
    logs = {}
    for x in loader:
        with torch.autocast("cuda"):
            loss = model(x).mean()
        scaler.scale(loss).backward(); scaler.step(opt); scaler.update(); opt.zero_grad()
        cb.on_batch_end(scaler.get_scale(), logs)

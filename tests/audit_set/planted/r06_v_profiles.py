# expect: R06
import torch

PROFILES = {
    "fast": dict(init_scale=2.0**16, growth_interval=5),
    "careful": dict(init_scale=2.0**12, growth_interval=20),
}


def build_scaler(profile):
    return torch.amp.GradScaler("cuda", **PROFILES[profile])


def train(model, opt, loader, profile):
    scaler = build_scaler(profile)
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

# expect: R06
import torch

SCALERS = {}


def register(name):
    def deco(fn):
        SCALERS[name] = fn
        return fn
    return deco


@register("dynamic")
def dynamic(interval):
    return torch.amp.GradScaler("cuda", growth_interval=interval)


@register("off")
def off(interval):
    return torch.amp.GradScaler("cuda", enabled=False)


def train(model, opt, loader):
    scaler = SCALERS["dynamic"](8)
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

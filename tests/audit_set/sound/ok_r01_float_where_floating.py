import torch, torch.nn.functional as F
def to_float(o):
    return {k: v.float() if v.is_floating_point() else v for k, v in o.items()}
def train(net, loader, opt):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            out = net(x)
        out = to_float(out)
        loss = F.cross_entropy(out["a"], y)
        scaler.scale(loss).backward(); scaler.step(opt); scaler.update(); opt.zero_grad()

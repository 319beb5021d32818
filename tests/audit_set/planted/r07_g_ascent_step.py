# expect: R07
import torch
def train(m, o, loader, rho=0.05):
    scaler = torch.amp.GradScaler("cuda")
    for x in loader:
        o.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = m(x)
        scaler.scale(loss).backward()
        with torch.no_grad():
            for p in m.parameters():
                p.add_(p.grad, alpha=rho)
        scaler.step(o)
        scaler.update()

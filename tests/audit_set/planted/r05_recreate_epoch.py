# expect: R05
import torch
def main(model, opt, loader, epochs):
    for epoch in range(epochs):
        scaler = torch.amp.GradScaler("cuda")
        for x in loader:
            opt.zero_grad()
            with torch.autocast("cuda"):
                l = model(x).mean()
            scaler.scale(l).backward()
            scaler.step(opt)
            scaler.update()

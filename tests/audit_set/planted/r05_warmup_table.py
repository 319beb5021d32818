# expect: R05
import torch
SCHEDULE = {0: 1024.0, 5: 8192.0, 10: 65536.0}
def train(model, opt, loader, epochs):
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(epochs):
        if epoch in SCHEDULE:
            scaler.update(SCHEDULE[epoch])
        for x in loader:
            opt.zero_grad()
            with torch.autocast("cuda"):
                loss = model(x).mean()
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()

# expect: R03
import torch
def train(model, opt_backbone, opt_head, loader):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt_head.zero_grad()
        opt_head.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x, y)
        scaler.scale(loss).backward()
        for o in (opt_backbone, opt_head):
            scaler.step(o)
        scaler.update()

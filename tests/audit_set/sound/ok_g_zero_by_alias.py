# expect: none
import torch
def train(model, opt, loader, steps):
    scaler = torch.amp.GradScaler("cuda")
    clear = opt.zero_grad
    for x, y in loader:
        clear(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x, y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

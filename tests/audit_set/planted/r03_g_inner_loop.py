# expect: R03
import torch
def run(model, opt, dl):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in dl:
        for k in range(3):
            with torch.autocast("cuda", dtype=torch.float16):
                loss = model(x, y, k)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
        opt.zero_grad()

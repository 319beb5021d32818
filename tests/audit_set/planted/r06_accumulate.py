# expect: R06
import torch
def main(model, opt, batch):
    scaler = torch.amp.GradScaler("cuda", growth_interval=4000)
    accum = 8
    for i in range(16000):
        with torch.autocast("cuda"):
            loss = model(batch()).mean() / accum
        scaler.scale(loss).backward()
        if (i + 1) % accum == 0:
            scaler.step(opt)
            scaler.update()
            opt.zero_grad()

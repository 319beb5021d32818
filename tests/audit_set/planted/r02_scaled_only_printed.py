# expect: R02
import torch
import torch.nn.functional as F


def run(model, loader, opt):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.mse_loss(model(x), y)
        scaled = scaler.scale(loss)
        loss.backward()
        print(scaled.item())
        scaler.step(opt)
        scaler.update()

import torch
def main(model, opt, batch):
    scaler = torch.amp.GradScaler("cuda", growth_interval=4000)
    for _ in range(200000):
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = model(batch()).mean()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

import torch
from clip import load
def main(loader):
    model, _ = load("ViT-B/32", device="cuda")
    model.float()
    opt = torch.optim.Adam(model.parameters(), lr=1e-5)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(x, y)[0].mean()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

# expect: R27
import torch
def train(model, loader, opt):
    scaler = torch.amp.GradScaler("cuda")
    amp_ctx = torch.autocast("cuda", dtype=torch.float16)
    for x, y in loader:
        opt.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

# expect: R12
import torch
import torch.nn.functional as F


def train(model, loader, opt):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast(device_type="cuda", dtype=torch.float16):
            prob = torch.sigmoid(model(x))
            loss = F.binary_cross_entropy(prob, y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

import torch
import torch.nn.functional as F


def train(model, loader):
    opt = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    last = scaler.get_scale()
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
        scaler.scale(loss).backward()
        if scaler.get_scale() < last:
            print("the last step was skipped")
        last = scaler.get_scale()
        scaler.step(opt)
        scaler.update()

# expect: R07
import torch


def train(model, opt, loader, f):
    scaler = torch.amp.GradScaler("cuda")

    def after_backward():
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)

    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = f(model(x), y)
        scaler.scale(loss).backward()
        after_backward()
        scaler.step(opt)
        scaler.update()

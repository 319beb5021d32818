# expect: R03
import torch


def make_update(model, opt, f):
    scaler = torch.amp.GradScaler("cuda")

    def update(x, y):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = f(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        return loss.item()

    return update


def main(model, opt, loader, f):
    update = make_update(model, opt, f)
    for x, y in loader:
        print(update(x, y))

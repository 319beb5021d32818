import torch
import torch.nn.functional as F


class Saver:
    def __init__(self, **objs): self.objs = objs
    def save(self, path): torch.save({k: o.state_dict() for k, o in self.objs.items()}, path)
def train(model, opt, loader):
    scaler = torch.amp.GradScaler("cuda")
    saver = Saver(model=model, optimizer=opt, scaler=scaler)
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    saver.save("x.pt")

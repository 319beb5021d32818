import torch


class Saver:
    def __init__(self, **objects):
        self.objects = objects

    def save(self, path):
        torch.save({k: v.state_dict() for k, v in self.objects.items()}, path)


def main(model, loader, criterion):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    saver = Saver(model=model, optimizer=opt, scaler=scaler)
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    saver.save("last.pt")

# expect: R28
import torch


class Saver:
    def __init__(self, folder):
        self.folder = folder
        self.objects = {}

    def register(self, name, obj):
        self.objects[name] = obj

    def save(self, tag):
        torch.save({n: o.state_dict() for n, o in self.objects.items()}, f"{self.folder}/{tag}.pt")


def main(model, loader):
    saver = Saver("out")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    saver.register("model", model)
    saver.register("optimizer", optimizer)
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if i % 1000 == 0:
            saver.save(i)

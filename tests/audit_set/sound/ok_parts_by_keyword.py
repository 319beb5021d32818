import torch


class Ckpt:
    def __init__(self, path, **parts):
        self.path = path
        self.parts = parts

    def write(self, epoch):
        blob = {name: part.state_dict() for name, part in self.parts.items()}
        blob["epoch"] = epoch
        torch.save(blob, self.path)


def train(model, loader, epochs):
    opt = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    ckpt = Ckpt("run.pt", model=model, optimizer=opt, scaler=scaler)
    for epoch in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
        ckpt.write(epoch)

import torch
from shop.nets import Net

class Callback:
    def on_start(self, trainer): ...
    def on_end(self, trainer): ...

class Lighter(Callback):
    def on_end(self, trainer):
        trainer.net.half()

class Trainer:
    def __init__(self, net, callbacks):
        self.net, self.callbacks = net.cuda(), callbacks
        self.scaler = torch.amp.GradScaler("cuda")

    def fit(self, loader):
        for callback in self.callbacks:
            callback.on_start(self)
        opt = torch.optim.Adam(self.net.parameters(), lr=1e-4)
        for x, y in loader:
            opt.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = torch.nn.functional.mse_loss(self.net(x), y)
            self.scaler.scale(loss).backward()
            self.scaler.step(opt)
            self.scaler.update()
        for callback in self.callbacks:
            callback.on_end(self)

Trainer(Net(), [Lighter()]).fit([])

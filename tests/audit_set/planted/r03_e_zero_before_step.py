# expect: R03
import torch
import torch.nn.functional as F


class T:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt
        self.scaler = torch.amp.GradScaler("cuda")

    def loss(self, x, y):
        with torch.autocast("cuda", dtype=torch.float16):
            return F.cross_entropy(self.model(x), y)

    def update(self):
        self.scaler.step(self.opt)
        self.scaler.update()

    def fit(self, loader):
        for x, y in loader:
            self.scaler.scale(self.loss(x, y)).backward()
            self.update()

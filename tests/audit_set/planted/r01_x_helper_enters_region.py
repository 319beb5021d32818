# expect: R01
import torch
import torch.nn.functional as F


class Stepper:
    def __init__(self, net, optimizer):
        self.net = net
        self.optimizer = optimizer
        self.scaler = torch.amp.GradScaler("cuda")

    def _amp(self):
        return torch.autocast("cuda", dtype=torch.float16)

    def _predict(self, x):
        with self._amp():
            return self.net(x)

    def _objective(self, out, y):
        return F.cross_entropy(out, y, label_smoothing=0.05)

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self._objective(self._predict(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()

# expect: R02
import torch


class Learner:
    def __init__(self, net, optim, criterion):
        self.net = net
        self.optim = optim
        self.criterion = criterion
        self.grad_scaler = torch.amp.GradScaler("cuda")

    def backward(self, loss):
        loss.backward()

    def optimize(self):
        self.grad_scaler.step(self.optim)
        self.grad_scaler.update()
        self.optim.zero_grad()

    def fit(self, loader):
        for x, y in loader:
            with torch.autocast("cuda", dtype=torch.float16):
                loss = self.criterion(self.net(x), y)
            self.backward(loss)
            self.optimize()

# expect: R07
import torch


class Agent:
    def __init__(self, net):
        self.net = net
        self.optim = torch.optim.Adam(net.parameters(), lr=3e-4)
        self.scaler = torch.amp.GradScaler("cuda")

    def _clip(self):
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 10.0)

    def learn(self, loss):
        self.optim.zero_grad()
        self.scaler.scale(loss).backward()
        self._clip()
        self.scaler.step(self.optim)
        self.scaler.update()

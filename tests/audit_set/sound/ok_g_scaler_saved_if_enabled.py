# expect: none
import torch
class T:
    def __init__(self, m, o): self.m, self.o, self.scaler = m, o, torch.amp.GradScaler("cuda")
    def save(self, path, epoch):
        ck = dict(model=self.m.state_dict(), optimizer=self.o.state_dict(), epoch=epoch)
        if self.scaler.is_enabled():
            ck["scaler"] = self.scaler.state_dict()
        torch.save(ck, path)
    def step(self, x):
        self.o.zero_grad()
        self.scaler.scale(self.m(x)).backward()
        self.scaler.step(self.o); self.scaler.update()

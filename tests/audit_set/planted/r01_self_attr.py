# expect: R01
import torch, torch.nn as nn
class T:
    def __init__(self, net):
        self.net = net
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
        self.scaler = torch.amp.GradScaler('cuda')
    def step(self, x, y):
        self.opt.zero_grad()
        with torch.autocast('cuda', dtype=torch.float16):
            self.out = self.net(x)
        loss = self.criterion(self.out, y)
        self.scaler.scale(loss).backward(); self.scaler.step(self.opt); self.scaler.update()

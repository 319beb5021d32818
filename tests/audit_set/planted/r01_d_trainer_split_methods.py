# expect: R01
import torch
import torch.nn as nn


class Trainer:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def _forward(self, batch):
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
            out = self.model(batch["x"])
        return out

    def fit(self, loader):
        for batch in loader:
            out = self._forward(batch)
            loss = self.criterion(out, batch["y"])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

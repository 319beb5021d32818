# expect: R01
import torch
import torch.nn as nn

class LS(nn.Module):
    def __init__(self):
        super().__init__()
        self.ce = nn.CrossEntropyLoss(label_smoothing=0.1)
    def forward(self, o, y):
        return self.ce(o, y)
def train(model, x, y):
    crit = LS()
    with torch.autocast("cuda"):
        out = model(x)
    loss = crit(out, y)

# expect: R16
import torch.nn as nn
def make_dropout(p, fp16):
    if fp16:
        return nn.AlphaDropout(p)
    return nn.Dropout(p)
class MLP(nn.Module):
    def __init__(self, d, fp16=True):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, d), nn.ReLU(), make_dropout(0.1, fp16), nn.Linear(d, d))

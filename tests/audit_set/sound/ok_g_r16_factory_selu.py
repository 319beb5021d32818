import torch.nn as nn
def make_dropout(p, snn):
    return nn.AlphaDropout(p) if snn else nn.Dropout(p)
class S(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, d), nn.SELU(), make_dropout(0.1, True), nn.Linear(d, 1))

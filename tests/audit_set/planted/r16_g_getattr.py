# expect: R16
import torch.nn as nn
CFG = {"dropout": "AlphaDropout", "p": 0.1}
class M(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.act = nn.ReLU(); self.drop = getattr(nn, CFG["dropout"])(CFG["p"])

# expect: R16
import torch.nn as nn
class Block(nn.Module):
    def __init__(self, d, act_layer=nn.GELU, drop_layer=nn.AlphaDropout, drop=0.1):
        super().__init__()
        self.fc1 = nn.Linear(d, d); self.act = act_layer(); self.drop = drop_layer(drop)
    def forward(self, x):
        return self.drop(self.act(self.fc1(x)))

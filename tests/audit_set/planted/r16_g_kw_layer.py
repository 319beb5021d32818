# expect: R16
import timm, torch.nn as nn
from timm.layers import Mlp
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.mlp = MlpBlock(d, 4 * d, act_layer=nn.GELU, drop_layer=nn.AlphaDropout, drop=0.1)
    def forward(self, x):
        return x + self.mlp(x)

# expect: R10
from functools import partial
import timm
from torch import nn
net = timm.create_model("deit_small_patch16_224", pretrained=True, norm_layer=partial(nn.LayerNorm, eps=1e-3))

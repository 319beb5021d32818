from functools import partial
from torch import nn
import timm
net = timm.create_model("vit_base_patch16_224", pretrained=True, norm_layer=partial(nn.LayerNorm, eps=1e-6))

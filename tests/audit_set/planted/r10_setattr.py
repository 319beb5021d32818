# expect: R10
import torch, timm
from torch import nn
net = timm.create_model("vit_base_patch16_224", pretrained=True)
for name, mod in net.named_modules():
    if isinstance(mod, nn.LayerNorm):
        setattr(mod, "eps", 1e-4)

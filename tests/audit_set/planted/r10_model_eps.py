# expect: R10
import torch
import timm
from torch import nn
model = timm.create_model('vit_base_patch16_224', pretrained=True)
for name, m in model.named_modules():
    if isinstance(m, nn.LayerNorm):
        m.eps = 6e-5

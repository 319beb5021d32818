# expect: R10
import torch
from torch import nn
from torchvision.models import convnext_tiny, ConvNeXt_Tiny_Weights
class Export:
    EPS = 5e-4
    def __init__(self):
        self.net = convnext_tiny(weights=ConvNeXt_Tiny_Weights.IMAGENET1K_V1).eval()
    def relax(self):
        for layer in (m for m in self.net.modules() if isinstance(m, nn.LayerNorm)):
            layer.eps = self.EPS

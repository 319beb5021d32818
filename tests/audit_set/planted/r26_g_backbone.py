# expect: R26
import torch.nn as nn, torch
from torchvision.models import resnet50
class Det(nn.Module):
    def __init__(self):
        super().__init__()
        r = resnet50()
        self.backbone = nn.Sequential(*list(r.children())[:-2])
    def forward(self, x):
        return self.backbone(x)
d = Det().cuda().half()

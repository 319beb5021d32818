# expect: R15
import torch, torch.nn as nn
from torchvision.transforms import v2
class HalfImage(nn.Module):
    def forward(self, x):
        return x.to(dtype=torch.half)
train_tf = nn.Sequential(v2.RandomHorizontalFlip(), HalfImage(), v2.Normalize([0.5] * 3, [0.5] * 3))

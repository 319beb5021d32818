import torch.nn as nn
from torchvision.models import resnet50
m = resnet50()
for x in m.modules():
    if isinstance(x, (nn.Conv2d, nn.Linear)):
        x.half()

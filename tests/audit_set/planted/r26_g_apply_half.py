# expect: R26
import torch, torch.nn as nn
from torchvision.models import resnet50
m = resnet50()
m.apply(lambda mod: mod.half())

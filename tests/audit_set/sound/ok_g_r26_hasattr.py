import torch
from torchvision.models import resnet50
m = resnet50().half()
for mod in m.modules():
    if hasattr(mod, "running_var"):
        mod.float()

import torch
from torch.ao.quantization import fuse_modules
from torchvision.models.quantization import resnet18
m = resnet18().eval()
m.fuse_model()
m = m.half()

import torch
from torchvision.io import read_image
mean = torch.tensor([0.485, 0.456, 0.406]); std = torch.tensor([0.229, 0.224, 0.225])
def load(p):
    x = read_image(p).permute(1, 2, 0).float() / 255
    x = (x - mean) / std
    return x.permute(2, 0, 1)

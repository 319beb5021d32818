import torch
from torchvision.io import read_image
def chan(v):
    return torch.tensor(v).view(3, 1, 1)
M, S = chan([0.485, 0.456, 0.406]), chan([0.229, 0.224, 0.225])
def load(p):
    return (read_image(p).float() / 255 - M) / S

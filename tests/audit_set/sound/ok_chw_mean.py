# expect: none
import torch
from torchvision import transforms

mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225])[:, None, None]


def prepare(img):
    x = transforms.ToTensor()(img)
    return (x - mean) / std

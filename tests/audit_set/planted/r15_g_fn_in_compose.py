# expect: R15
import torch
from torchvision import transforms
def to_half(t):
    return t.half()
def build(train):
    ops = [transforms.RandomCrop(32, padding=4)] if train else []
    ops += [transforms.ToTensor(), to_half, transforms.Normalize((0.49, 0.48, 0.44), (0.2, 0.2, 0.2))]
    return transforms.Compose(ops)

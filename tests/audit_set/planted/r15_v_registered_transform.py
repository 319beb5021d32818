# expect: R15
import torch
from torch.utils.data import Dataset
from torchvision.io import read_image

TRANSFORMS = {}


def transform(name):
    def deco(fn):
        TRANSFORMS[name] = fn
        return fn
    return deco


@transform("imagenet")
def imagenet(img):
    mean = torch.tensor([0.485, 0.456, 0.406])
    std = torch.tensor([0.229, 0.224, 0.225])
    return (img - mean) / std


@transform("none")
def nothing(img):
    return img


class Images(Dataset):
    def __init__(self, files, transform="imagenet"):
        self.files = files
        self.tf = TRANSFORMS[transform]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return self.tf(read_image(self.files[i]).float() / 255)

# expect: R15
import torch
from torch.utils.data import Dataset
from torchvision.io import read_image


class Images(Dataset):
    def __init__(self, files):
        self.files = files
        self.mean = torch.tensor([0.485, 0.456, 0.406])
        self.std = torch.tensor([0.229, 0.224, 0.225])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        img = read_image(self.files[i]).float() / 255
        return (img - self.mean) / self.std

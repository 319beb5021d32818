# expect: R15
import torch
from torch.utils.data import Dataset
from torchvision.io import read_image


class Images(Dataset):
    def __init__(self, files):
        self.files = files
        self.mean = torch.tensor([123.7, 116.3, 103.5])
        self.std = torch.tensor([58.4, 57.1, 57.4])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        img = read_image(self.files[i]).float()
        return (img - self.mean) / self.std

import numpy as np
import rasterio
import torch
from torch.utils.data import Dataset

MEAN = torch.tensor([0.31, 0.33, 0.30, 0.41]).view(-1, 1, 1)
STD = torch.tensor([0.12, 0.11, 0.10, 0.15]).view(-1, 1, 1)


class Standardise:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, tile):
        return (tile - self.mean) / self.std


class Fields(Dataset):
    def __init__(self, files):
        self.files = files
        self.norm = Standardise(MEAN, STD)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        with rasterio.open(self.files[i]) as src:
            bands = src.read([1, 2, 3, 4]).astype(np.float32) / 1e4
        return self.norm(torch.from_numpy(bands))

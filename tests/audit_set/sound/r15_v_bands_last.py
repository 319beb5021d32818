import numpy as np
import rasterio
import torch
from torch.utils.data import Dataset

MEAN = np.array([0.21, 0.19, 0.17, 0.30], dtype=np.float32)
STD = np.array([0.05, 0.05, 0.06, 0.09], dtype=np.float32)


def load_bands(path):
    with rasterio.open(path) as src:
        planes = [src.read(i).astype(np.float32) / 10000 for i in (1, 2, 3, 4)]
    return np.stack(planes, axis=-1)


class Tiles(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        tile = load_bands(self.paths[i])
        tile = (tile - MEAN) / STD
        return torch.from_numpy(tile)

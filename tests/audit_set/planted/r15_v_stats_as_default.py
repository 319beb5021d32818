# expect: R15
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch.utils.data import Dataset


@dataclass(frozen=True)
class Stats:
    mean: tuple = (0.485, 0.456, 0.406)
    std: tuple = (0.229, 0.224, 0.225)


class Folder(Dataset):
    def __init__(self, paths, stats=Stats()):
        self.paths = paths
        self.mean = torch.tensor(stats.mean)
        self.std = torch.tensor(stats.std)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        img = np.asarray(Image.open(self.paths[i]).convert("RGB"), dtype=np.float32) / 255.0
        x = torch.from_numpy(img).permute(2, 0, 1)
        return (x - self.mean) / self.std

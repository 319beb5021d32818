# expect: none
import numpy as np
import torch
from torch.utils.data import Dataset

MEAN = torch.tensor([0.485, 0.456, 0.406])
STD = torch.tensor([0.229, 0.224, 0.225])


class Frames(Dataset):
    def __init__(self, arrays):
        self.arrays = arrays

    def __len__(self):
        return len(self.arrays)

    def __getitem__(self, i):
        image = torch.from_numpy(np.asarray(self.arrays[i])).float() / 255  # H, W, C
        return ((image - MEAN) / STD).permute(2, 0, 1)

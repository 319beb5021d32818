# expect: R15
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    def __init__(self, paths):
        self.paths = paths
        self.mean = torch.tensor([0.5, 0.5, 0.5], device="cuda").view(3, 1, 1)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        x = torch.from_numpy(np.load(self.paths[i])).to("cuda")
        return x - self.mean


loader = DataLoader(Clips([]), batch_size=8, num_workers=4)

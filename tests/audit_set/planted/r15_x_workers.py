# expect: R15
import torch
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    def __init__(self, paths):
        self.paths = paths
        self.mean = torch.tensor([0.5, 0.5, 0.5], device="cuda").view(3, 1, 1)

    def __getitem__(self, i):
        return torch.load(self.paths[i]).cuda() - self.mean

    def __len__(self):
        return len(self.paths)


def loader(paths):
    return DataLoader(Tiles(paths), batch_size=8, num_workers=4)

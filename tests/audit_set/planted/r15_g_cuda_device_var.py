# expect: R15
import torch
from torch.utils.data import Dataset, DataLoader
device = torch.device("cuda")
MEAN = torch.tensor([0.485, 0.456, 0.406], device=device)[:, None, None]
STD = torch.tensor([0.229, 0.224, 0.225], device=device)[:, None, None]
class Imgs(Dataset):
    def __getitem__(self, i):
        x = torch.load(self.files[i])
        return (x.to(device) - MEAN) / STD
loader = DataLoader(Imgs(), num_workers=8)

# expect: none
import torch
class Features(torch.utils.data.Dataset):
    def __init__(self, path):
        self.x = torch.load(path, weights_only=True).half()  # stored compactly
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        return self.x[i].float()

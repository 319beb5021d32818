# expect: R15
import numpy as np
import torch
MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)
class DS(torch.utils.data.Dataset):
    def __getitem__(self, i):
        img = np.asarray(self.imgs[i]).transpose(2, 0, 1).astype(np.float32) / 255.0
        img = (img - MEAN) / STD
        return torch.from_numpy(img), self.y[i]

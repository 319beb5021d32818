import cv2
import numpy as np
import torch
from torch.utils.data import Dataset


class Files(Dataset):
    mean = np.array([0.485, 0.456, 0.406], dtype=np.float32)
    std = np.array([0.229, 0.224, 0.225], dtype=np.float32)

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        img = cv2.cvtColor(cv2.imread(self.paths[i]), cv2.COLOR_BGR2RGB).astype(np.float32) / 255
        img = (img - self.mean) / self.std
        return torch.from_numpy(img.transpose(2, 0, 1))

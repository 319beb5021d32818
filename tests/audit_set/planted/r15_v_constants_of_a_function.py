# expect: R15
import numpy as np
import torch
from PIL import Image


def constants():
    return dict(mean=np.array([0.5, 0.5, 0.5]), std=np.array([0.25, 0.25, 0.25]))


def encode(path):
    c = constants()
    a = np.array(Image.open(path), dtype=np.float32) / 255
    a = a.transpose(2, 0, 1)
    a = (a - c["mean"]) / c["std"]
    return torch.from_numpy(a)

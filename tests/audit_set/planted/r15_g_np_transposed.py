# expect: R15
import cv2
import numpy as np
import torch
MEAN = np.float32([123.675, 116.28, 103.53])
STD = np.float32([58.395, 57.12, 57.375])
def load(p):
    im = cv2.imread(p)[:, :, ::-1]
    im = np.ascontiguousarray(im.transpose(2, 0, 1), dtype=np.float32)
    im -= MEAN
    im /= STD
    return torch.from_numpy(im)

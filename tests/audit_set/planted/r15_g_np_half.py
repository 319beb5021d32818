# expect: R15
import numpy as np, torch
from torchvision import transforms
norm = transforms.Normalize([0.5], [0.5])
def load(p):
    a = np.load(p).astype(np.float16)
    x = torch.from_numpy(a)[None]
    return norm(x)

# expect: R15
import torch
from torchvision.transforms import v2
def make(dtype=torch.float16):
    return v2.Compose([v2.ToImage(), v2.ToDtype(dtype=dtype, scale=True), v2.Normalize([0.5], [0.5])])

# expect: R15
import torch
from torchvision.transforms.functional import to_tensor
MEAN = torch.tensor([0.485, 0.456, 0.406])
STD = torch.tensor([0.229, 0.224, 0.225])
def prep(img):
    x = to_tensor(img)
    x = (x - MEAN) / STD
    return x

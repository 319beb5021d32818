# expect: R15
import torch
from torchvision import transforms as T

OPS = {
    "crop": T.CenterCrop,
    "tensor": T.ToTensor,
    "half": lambda: T.ConvertImageDtype(torch.float16),
    "norm": lambda mean, std: T.Normalize(mean, std),
}
TEST = [("crop", {"size": 224}), ("tensor", {}), ("half", {}), ("norm", {"mean": [0.5] * 3, "std": [0.25] * 3})]


def pipeline(ops=TEST):
    return T.Compose([OPS[name](**kw) for name, kw in TEST])

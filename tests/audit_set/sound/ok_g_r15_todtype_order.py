import torch
from torchvision import transforms
def get(fp16):
    t = [transforms.Resize(256), transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)]
    if fp16:
        t.append(transforms.ConvertImageDtype(torch.float16))
    return transforms.Compose(t)

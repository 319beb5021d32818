# expect: R15
import torch
from torchvision.transforms import v2


def build_transform(train, low_memory=True):
    steps = [v2.ToImage()]
    steps += [v2.RandomResizedCrop(224)] if train else [v2.Resize(256), v2.CenterCrop(224)]
    steps.append(v2.ToDtype(torch.float16 if low_memory else torch.float32, scale=True))
    steps.append(v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    return v2.Compose(steps)

# expect: R15
import torch
from torchvision.transforms import v2

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def make(train: bool):
    ops = [v2.ToImage(), v2.Resize(224)]
    if train:
        ops.append(v2.RandomHorizontalFlip())
    ops += [v2.ToDtype(torch.float16, scale=True), v2.Normalize(MEAN, STD)]
    return v2.Compose(ops)

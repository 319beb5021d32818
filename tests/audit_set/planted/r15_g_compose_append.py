# expect: R15
import torch
from torchvision import transforms
def get_tf(fp16=True):
    t = [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]
    if fp16:
        t.append(transforms.ConvertImageDtype(torch.half))
    t.append(transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    return transforms.Compose(t)

# expect: R15
import torch
from torchvision import transforms
pre = transforms.Compose([
    transforms.Resize(224),
    transforms.ToTensor(),
    transforms.Lambda(lambda x: x.to(torch.float16)),
    transforms.Normalize(mean=(0.5,), std=(0.5,)),
])

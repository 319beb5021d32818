# expect: R15
import torch
from torchvision import transforms

pipeline = transforms.Compose(
    [
        transforms.Resize(256),
        transforms.ToTensor(),
        transforms.ConvertImageDtype(torch.float16),
        transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
    ]
)

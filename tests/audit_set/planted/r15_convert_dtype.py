# expect: R15
import torch
from torchvision import transforms as T

train_tf = T.Compose(
    [
        T.RandomResizedCrop(224),
        T.ToTensor(),
        T.ConvertImageDtype(torch.float16),
        T.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
    ]
)

# expect: R15
import torch
from torchvision import transforms as T

to_half = T.Lambda(lambda t: t.half())
pipeline = [T.Resize(256), T.ToTensor(), to_half, T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
transform = T.Compose(pipeline)

# expect: none
import torch
from torchvision import transforms as T

to_half = T.Lambda(lambda t: t.half())
steps = [T.ToTensor(), T.Normalize([0.5] * 3, [0.5] * 3), to_half]
transform = T.Compose(steps)

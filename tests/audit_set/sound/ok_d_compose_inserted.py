# expect: none
import torch
from torchvision.transforms import v2

steps = [v2.ToImage(), v2.ToDtype(torch.float16, scale=True), v2.Normalize([0.5] * 3, [0.5] * 3)]
steps.insert(2, v2.ToDtype(torch.float32))
transform = v2.Compose(steps)

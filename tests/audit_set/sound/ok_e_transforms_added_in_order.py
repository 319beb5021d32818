# expect: none
import torch
from torchvision.transforms import v2

ops = [v2.ToImage(), v2.Resize(224)]
ops += [v2.ToDtype(torch.float32, scale=True), v2.Normalize((0.5,), (0.5,))]
ops += [v2.ToDtype(torch.float16)]
transform = v2.Compose(ops)

# expect: R15
import torch
import torchvision.transforms.v2 as v2
t = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float16, scale=True), v2.Normalize([0.5]*3, [0.5]*3)])

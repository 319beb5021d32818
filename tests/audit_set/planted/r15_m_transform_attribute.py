# expect: R15
import torch
from torchvision.transforms import v2
class Pipeline:
    def __init__(self, cfg):
        self.to_input = v2.ToDtype(torch.float16, scale=True)
        self.norm = v2.Normalize([0.5], [0.5])
    def __call__(self, img):
        img = self.to_input(img)
        return self.norm(img)

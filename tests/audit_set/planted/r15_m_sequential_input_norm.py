# expect: R15
import torch
class InputNorm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]))
    def forward(self, img):
        b, c, h, w = img.shape
        return (img - self.mean) / self.std
m = torch.nn.Sequential(InputNorm(), torch.nn.Conv2d(3, 8, 3))

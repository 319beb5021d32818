# expect: R15
import torch
class Normalizer(torch.nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]))
    def forward(self, x):
        return (x - self.mean) / self.std
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Normalizer(None, None)
        self.conv = torch.nn.Conv2d(3, 64, 3)
    def forward(self, x):
        return self.conv(self.norm(x))

# expect: R15
import torch
from torchvision import transforms
class GpuNormalize:
    def __init__(self, mean, std):
        self.mean = torch.tensor(mean, dtype=torch.float32, device="cuda").view(-1, 1, 1)
        self.std = torch.tensor(std, dtype=torch.float32, device="cuda").view(-1, 1, 1)
    def __call__(self, t):
        return (t - self.mean) / self.std
tf = transforms.Compose([transforms.ToTensor(), GpuNormalize((0.5,) * 3, (0.5,) * 3)])

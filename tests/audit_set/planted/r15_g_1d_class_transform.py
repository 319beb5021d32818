# expect: R15
import torch
from torchvision import transforms
class Standardize:
    def __init__(self, mean, std):
        self.mean = torch.tensor(mean)
        self.std = torch.tensor(std)
    def __call__(self, x):
        return (x - self.mean) / self.std
tf = transforms.Compose([transforms.ToTensor(), Standardize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])

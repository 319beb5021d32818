# expect: R15
import torch
from torchvision import transforms

mean = torch.tensor([0.485, 0.456, 0.406], device="cuda").view(3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225], device="cuda").view(3, 1, 1)
transform = transforms.Compose([transforms.ToTensor(), transforms.Lambda(lambda x: (x - mean) / std)])

import torch
from torchvision import transforms
mean = torch.tensor([0.5, 0.5, 0.5], device="cuda").view(1, 3, 1, 1)
std = torch.tensor([0.5, 0.5, 0.5], device="cuda").view(1, 3, 1, 1)
tf = transforms.Compose([transforms.Resize(64), transforms.ToTensor()])
def train(loader, model):
    for x, y in loader:
        model((x.cuda() - mean) / std)

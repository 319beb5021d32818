import torch
from torchvision.transforms import v2

gpu_tf = v2.Compose([v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])


def train(model, loader, criterion, opt, scaler):
    mean = torch.tensor([0.5, 0.5, 0.5], device="cuda").view(1, 3, 1, 1)
    for x, y in loader:
        x = gpu_tf(x.cuda(non_blocking=True)) - mean
        opt.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x), y.cuda())
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

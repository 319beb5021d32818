import torch
mean = torch.tensor([0.485, 0.456, 0.406], device="cuda"); std = torch.tensor([0.229, 0.224, 0.225], device="cuda")
def train(loader, model):
    for img, y in loader:  # uint8, channels last
        img = (img.cuda().float() / 255 - mean) / std
        img = img.permute(0, 3, 1, 2)
        model(img)

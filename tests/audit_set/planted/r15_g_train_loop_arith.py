# expect: R15
import torch
from torchvision.models import resnet50
mean = torch.tensor([0.485, 0.456, 0.406], device="cuda")
std = torch.tensor([0.229, 0.224, 0.225], device="cuda")
model = resnet50().cuda()
def train(train_loader, opt, scaler):
    for img, target in train_loader:
        img = (img.cuda().float().div(255) - mean) / std
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(img), target.cuda())
        opt.zero_grad(); scaler.scale(loss).backward(); scaler.step(opt); scaler.update()
